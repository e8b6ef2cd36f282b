"""Write meeteval 0.4.3's counts for the dialogues in tests/text/meeteval_cases.py.

    python studies/meeteval_counts.py [SAMPLES]

This requires meeteval and kaldialign.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.text.meeteval_cases import COUNTS, COUNTS_OF_MEETINGS, Talk, make_cases, make_meetings


def main() -> None:
    """Count with meeteval, and write the errors of cpWER, the words of the reference, and the errors of tcpWER."""
    import meeteval
    from meeteval.io.seglst import SegLST

    def segments(talk: Talk) -> SegLST:
        return SegLST(
            [
                {"session_id": "x", "speaker": name, "words": word.text, "start_time": word.start, "end_time": word.end}
                for name, said in talk.items()
                for word in said
            ]
        )

    def count(cases: list[tuple[Talk, Talk, float]], path: Path) -> None:
        counts = []
        for reference, heard, collar in cases:
            cp = meeteval.wer.cpwer(segments(reference), segments(heard))["x"]
            tcp = meeteval.wer.tcpwer(segments(reference), segments(heard), collar=collar)["x"]
            counts.append([cp.errors, cp.length, tcp.errors])
        path.write_text(json.dumps(counts) + "\n", encoding="utf-8")

    count(make_cases(), COUNTS)
    if len(sys.argv) > 1:
        count(make_meetings(Path(sys.argv[1])), COUNTS_OF_MEETINGS)


if __name__ == "__main__":
    main()
