"""Who wrote the scripts of Real-Pod, whose voices speak them, and what is known to be wrong with them; for the card."""

from podeval.datasets.dataset_record import ResponsibleUse

PROVENANCE = (
    "The categories are those of podcast directories. A language model suggested topics for each, which were "
    "reviewed, and episodes were chosen by hand (paper, section 3). podeval added ids, language, voices, the numbers "
    "of show and episode, and the store's country; it also decides how many voices a topic has: as many as its script, "
    "two to four. The scripts of this revision, in both versions and with their sources, were written for podeval in "
    "November 2026 by Claude, a language model of Anthropic, in one session (which does not know its exact version), "
    "script by script after an editor's review of those of revision 1.2.0, which were also written by a language "
    "model; no person wrote or edited them. Rules check lengths, turns, whether everything can be read aloud, that "
    "both versions say the same and the written one stands alone, contractions, repeated openings and endings, that "
    "voices are used equally, that every year or name has a source, and that no phrase of eight words occurs in two "
    "scripts. No episode was read for them. Hosts and guests are invented. The "
    "paper's systems read scripts made by PodAgent, and MoonCast's spontaneous version of them. The voices are 12 "
    "women and 12 men from PodAgent's presets, one utterance of 6.6 to 9.9 seconds each, stored as FLAC; each speaks "
    "in five scripts. The tables `hard`, `long`, `long_zh`, `demo_zh` and `zh` were also written in November 2026 by "
    "Claude, each long episode as a whole; rules check them. The six scripts of `demo` are by podeval's founders, "
    "which are sessions of Claude too. The table `sources` has one row for every script, with sources for its claims "
    "from the model's knowledge, or a note that it claims nothing; no protocol covers it, and no system is shown "
    "sources, tags or accepted readings. Rows of `episodes` come from the models of the embedded profile, which each "
    "row names, and clips are grouped as in PodEval."
)

RESPONSIBLE_USE = ResponsibleUse(
    use_cases=(
        "Comparing systems that make podcasts with each other and with published episodes; finding out what they "
        "stumble over and how well they last over an hour."
    ),
    out_of_scope=(
        "Training; learning facts from scripts; using the voices, or the episodes' makers, for anything else."
    ),
    biases=(
        "Only English and Chinese; 17 categories, three topics each. Chinese scripts have no voices, because no "
        "recordings with a suitable licence were available. The voices are those of audiobook readers, most of them "
        "American, whatever the speaker's region; they do not match the speakers' ages. Of the 51 scripts, 13 have two "
        "women, 13 two men, 12 a woman and a man (each is the host in six), eight three speakers and five four "
        "speakers; 25 hosts are women, 26 men. Most of the speech is British. Scripts by one language "
        "model share its habits; a writer or a judge of the same family may suit them better than others. "
        "Accepted readings of `hard` are those that we thought of, and names are spelt as a transcriber might spell "
        "them: a correct reading that is in no list counts as wrong."
    ),
    personal_information=(
        "Titles and links of published episodes name their makers. The voices are recordings that volunteers "
        "published; they are not meant to be cloned for anything but this test. Scripts name dead "
        "and public people for what they did or published. Victims of crimes and people who were wrongly "
        "accused are not named; scripts that mention suicide say that help lines exist."
    ),
    sensitive_content=(
        "Some scripts are about crimes, illness, grief and fear. They treat victims and living people as a "
        "public broadcaster would; scripts on medical topics refer listeners to a doctor."
    ),
    synthetic=True,
)

KNOWN_ERRORS = (
    "Links break: `podeval data fetch real_pod` shows which episodes are still available.",
    "Links of topics 28 to 51 go to the Hong Kong store (/hk/), some with a language; the others go to /us/.",
    "The authors do not state the length, language, licence or number of speakers of an episode.",
    "The language model that wrote the scripts named the sources from its knowledge: nobody has checked each "
    "source against its claim. A program lists every sentence with a figure or, in English, a name that has neither a "
    "source nor a reader's mark that the story invented it (`own_turns`, `own_names`); there are none. It cannot find "
    "names in Chinese, and the marks are a language model's reading.",
    "Names and words from other languages are written in plain letters, without accents.",
    "Fillers of the spontaneous version were written, not transcribed from real conversations.",
)
