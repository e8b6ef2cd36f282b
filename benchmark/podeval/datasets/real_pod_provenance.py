"""Who wrote the scripts of Real-Pod, whose voices speak them, and what is known to be wrong with them; for the card."""

from podeval.datasets.dataset_record import ResponsibleUse

PROVENANCE = (
    "Categories are those of podcast directories; topics were suggested by a language model for each and "
    "reviewed, episodes chosen by hand (paper, section 3). Ids, language, voices, the numbers of show and "
    "episode and the store's country are added here; how many voices a topic has is podeval's own request: "
    "that of its script, two to four. The scripts of this revision, in both versions and with the sources, "
    "were written for podeval in November 2026 by Claude, a language model of Anthropic, in one session (which "
    "does not know its exact version), script by script after an editor's review of those of revision 1.2.0, "
    "which a language model had written too; no person wrote or edited them. They are checked by rules: "
    "lengths, turns, what can be read aloud, that both versions say the same and the written one stands alone, "
    "contractions, openings and endings that repeat, voices used equally, a source wherever a year or a name "
    "is said, no phrase of eight words in two scripts. No episode was read for them. Hosts and guests are "
    "invented. Revision 1.2.0 stays in podeval as the splits `topics_v1` and `spontaneous_v1`, whose protocols "
    "differ from those of `topics` and `spontaneous`. The paper's systems read scripts that PodAgent made, and "
    "MoonCast's spontaneous version of them. Voices are 12 women and 12 men of PodAgent's presets, one "
    "utterance of 6.6 to 9.9 seconds each, stored as FLAC, and each speaks in five scripts. The tables `hard`, "
    "`long`, `long_zh`, `demo_zh` and `zh` were written in November 2026 by Claude as well, each long episode as "
    "one; rules check them. The six scripts of `demo` are by podeval's founders, sessions of Claude too. The "
    "table `sources` has a row for every script, with the sources of its claims from the model's knowledge, or a note "
    "that it claims nothing; no protocol covers them, and no system is shown sources, tags or accepted readings. Rows "
    "of `episodes` come from the models of the embedded profile, named in each row, and clips are grouped as PodEval "
    "does."
)

RESPONSIBLE_USE = ResponsibleUse(
    use_cases=(
        "Comparing systems that make podcasts with each other and with published episodes; finding what they "
        "stumble over and how they hold out over an hour."
    ),
    out_of_scope=(
        "Training; learning facts from scripts; taking the voices, or the episodes' makers, for anything else."
    ),
    biases=(
        "English and Chinese alone, 17 categories, three topics each. Chinese scripts have no voices, as no "
        "recordings were at hand whose licence allows it. Voices are of readers of audiobooks, most of them "
        "American, whatever the region of a speaker; they are not matched with a speaker's age. Of the 51 "
        "scripts 13 are of two women, 13 of two men, 12 of a woman and a man (either is host in six), eight of "
        "three and five of four speakers; 25 hosts are women, 26 men. British speech prevails. Scripts of one language "
        "model share habits of it; a writer or a judge of the same family may fit them better than others. "
        "Accepted readings of `hard` are those that we thought of, and names are spelt as a transcriber might: a right "
        "reading that is in no list counts as wrong."
    ),
    personal_information=(
        "Titles and links of published episodes name their makers. Voices are recordings of volunteers who "
        "published them; cloning them for anything but this test is not what they are for. Scripts name dead "
        "and public people for what they did or published. Victims of crimes and people who were wrongly "
        "accused are not named; where suicide is spoken of, the script says that help lines exist."
    ),
    sensitive_content=(
        "Some scripts are of crimes, illness, grief and fear. Victims and living people are treated as a "
        "public broadcaster would; medical topics send listeners to a doctor."
    ),
    synthetic=True,
)

KNOWN_ERRORS = (
    "Links rot: `podeval data fetch real_pod` shows which episodes can still be had.",
    "Links of topics 28 to 51 are to the store of Hong Kong (/hk/), some with a language; the others to /us/.",
    "The authors state no length, language, licence or number of speakers of an episode.",
    "Sources were named by the language model that wrote the scripts, from knowledge: nobody has opened each "
    "of them beside its claim. A program lists every sentence with a figure or, in English, a name that has neither a "
    "source nor a reader's mark that it is the story's own (`own_turns`, `own_names`); there is none. Names in Chinese "
    "it cannot find, and marks are a language model's reading. Scripts of revision 1.2.0 (`topics_v1`) have none.",
    "`long` of revision 2.1.0 stays in podeval as `long_v1`: a pupil of seventeen did a project of Ireland's "
    "transition year, whose pupils are younger, and a swimmer of 1927 was said to have fought those who took her out.",
    "Names and words of other languages are written in plain letters, without their accents.",
    "Fillers of the spontaneous version were written, not transcribed from people who talk.",
)
