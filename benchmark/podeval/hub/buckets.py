"""A folder of a storage bucket on the Hub: its list of files and their content, with calls that are retried."""

from pathlib import Path

from huggingface_hub import HfApi, HfFileSystem
from huggingface_hub.errors import BucketNotFoundError, EntryNotFoundError, HfHubHTTPError

from podeval.errors import BadInput
from podeval.hub.retry import call_with_retries


class BucketFolder:
    """One folder of a bucket; other writers to it are not trusted.

    Args:
        bucket: `owner/name`.
        path: path of the folder in the bucket.
        api: the Hub's client, with a token that may read the bucket.
    """

    def __init__(self, bucket: str, path: str, *, api: HfApi | None = None) -> None:
        self.bucket, self.path = bucket, path.strip("/")
        self._api = api or HfApi()

    def files(self) -> dict[str, int]:
        """Return the size in bytes of every file by its path in the folder; empty if there is no such folder.

        Raises:
            BadInput: there is no such bucket, or it may not be read.
            HubUnavailable: the Hub does not answer.
        """
        prefix = f"{self.path}/"

        def list_files() -> dict[str, int]:
            entries = self._api.list_bucket_tree(self.bucket, self.path, recursive=True)
            return {
                entry.path.removeprefix(prefix): entry.size
                for entry in entries
                if entry.type == "file" and entry.path.startswith(prefix)
            }

        try:
            return call_with_retries(list_files)
        except EntryNotFoundError:
            return {}
        except HfHubHTTPError as error:
            raise BadInput(f"the bucket {self.bucket} cannot be read ({error}); check the token") from None

    def fetch(self, name: str, size: int, target: Path) -> None:
        """Download a file that was listed with this size; refuse a file that has changed in size since.

        Raises:
            BadInput: the file is not there as it was listed.
            HubUnavailable: the Hub does not answer.
        """
        address = f"hf://buckets/{self.bucket}/{self.path}/{name}"

        def get_file() -> None:
            system = HfFileSystem(
                endpoint=self._api.endpoint, token=self._api.token, skip_instance_cache=True, use_listings_cache=False
            )
            target.parent.mkdir(parents=True, exist_ok=True)
            system.get_file(address, str(target))

        try:
            call_with_retries(get_file)
        except (HfHubHTTPError, OSError) as error:
            raise BadInput(f"{name} cannot be fetched from the bucket {self.bucket} ({error})") from None
        if target.stat().st_size != size:
            target.unlink()
            raise BadInput(f"{name} in the bucket {self.bucket} changed while it was read")

    def delete(self) -> int:
        """Delete every file of the folder; return how many there were. A bucket keeps no history.

        Raises:
            BadInput: the token may not delete.
            HubUnavailable: the Hub does not answer; calling again completes the deletion.
        """
        try:
            call_with_retries(lambda: self._api.bucket_info(self.bucket))
            paths = [f"{self.path}/{name}" for name in self.files()]
            if paths:
                call_with_retries(lambda: self._api.batch_bucket_files(self.bucket, delete=paths))
        except BucketNotFoundError:
            return 0
        except HfHubHTTPError as error:
            raise BadInput(f"the Hub deletes nothing in the bucket {self.bucket} ({error}); check the token") from None
        return len(paths)

    def make_bucket(self) -> None:
        """Create the bucket as a private one if it does not exist.

        Raises:
            BadInput: the token may not create it.
            HubUnavailable: the Hub does not answer.
        """
        try:
            call_with_retries(lambda: self._api.create_bucket(self.bucket, private=True, exist_ok=True))
        except HfHubHTTPError as error:
            raise BadInput(f"the Hub refused the bucket {self.bucket} ({error}); check the token") from None
