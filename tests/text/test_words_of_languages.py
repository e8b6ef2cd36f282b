"""Words in 30 languages: what is read alike has no errors, and a wrong vowel, accent or tone mark has one."""

import unicodedata

import pytest

from podeval.text.comparison.alignment import split_words
from podeval.text.comparison.word_errors import count_word_errors
from podeval.text.script_format import count_length

ALIKE = [
    ("French, curly apostrophes", "L’homme qu’il a vu n’était pas là.", "L'homme qu'il a vu n'était pas là"),
    ("French, two letters of one", "Sœur et CŒUR", "soeur et coeur"),
    ("French, an effect of a backtick", "L`été d´Anne", "l'été d'anne"),
    ("French, a Turkish name", "Il a vu Yıldız. Ils chantent.", "il a vu yıldız ils chantent"),
    ("French, footnotes", "La ville¹ est belle²", "la ville est belle"),
    ("Italian", "Un po’ d’acqua, per favore.", "un po' d'acqua per favore"),
    ("Ukrainian, four apostrophes", "П’ять комп'ютерів і п`ять об\u02bcєктів", "п'ять комп’ютерів і пʼять об'єктів"),
    ("Catalan, one letter of two", "Pa\u0140lid i co\u0140legi", "pal·lid i col·legi"),
    ("German, sharp s", "STRASSE HEISST", "Straße heißt"),
    ("Turkish, capitals", "İSTANBUL VE IĞDIR ILIK", "istanbul ve ığdır ılık"),
    ("Turkish, lowered by Python", "İstanbul".lower(), "istanbul"),
    ("Romanian, comma and cedilla", "Țara și știința", "ţara şi ştiinţa"),
    ("Russian, dots and stress", "Ёлка стои́т в за́мке", "елка стоит в замке"),
    ("Greek, final sigma", "ΟΔΥΣΣΕΥΣ", "οδυσσευς"),
    ("Arabic, fully vowelled", "مُحَمَّدٌ ذَهَبَ إِلَى المَدْرَسَةِ", "محمد ذهب إلى المدرسة"),
    ("Arabic, the wasla and a dagger", "ٱلرَّحْمَٰن", "الرحمن"),
    ("Arabic, tatweel and digits", "محمـــد عنده ٣ كتب", "محمد عنده 3 كتب"),
    ("Persian, joiners and Arabic keys", "می\u200cخواهم کتابی بخرم", "ميخواهم كتابي بخرم"),
    ("Persian, digits", "سال ۱۴۰۲", "سال 1402"),
    ("Urdu", "یہ کتاب ہے", "يہ كتاب ہے"),
    ("Hebrew, fully vowelled", "שָׁלוֹם עֲלֵיכֶם", "שלום עליכם"),
    ("Hebrew, signs of abbreviation", "צה״ל בג׳ורג׳יה", 'צה"ל בג\'ורג\'יה'),
    ("Hindi, a consonant with a dot", "सड़क", "सड\u093cक"),
    ("Hindi, digits and a joiner", "क्\u200dया १२ लोग हैं", "क्या 12 लोग हैं"),
    ("Bengali, an old and a new letter", "হঠাত্\u200d কিছু", "হঠাৎ কিছু"),
    ("Malayalam, an old and a new letter", "അവന്\u200d വന്നു", "അവൻ വന്നു"),
    ("Sinhala, a joiner", "ශ්\u200dරී ලංකාව", "ශ්රී ලංකාව"),
    ("Tamil, a vowel of two parts", "தொழில்", "த\u0bc6\u0bbeழில்"),
    ("Thai, a tone mark typed first", "น้ำ", "น\u0e4d\u0e49า"),
    ("Thai, a zero width space and digits", "วันนี้\u200bอากาศดี ๕ องศา", "วันนี้ อากาศดี 5 องศา"),
    ("Khmer, a zero width space", "សួស្តី\u200bពិភពលោក", "សួស្តីពិភពលោក"),
    ("Japanese, widths", "ﾃｽﾄは５月３日です。", "テストは5月3日です"),
    ("Chinese, old forms of characters", "\u2f08\u2f1d", "人口"),
    ("Korean, decomposed", unicodedata.normalize("NFD", "안녕하세요 여러분"), "안녕하세요 여러분"),
    ("Korean, quotations and titles", "“안녕?”이라고 ‘그’가 <괴물>을 《밤》과", "안녕이라고 그가 괴물을 밤과"),
    ("Vietnamese, decomposed", unicodedata.normalize("NFD", "Tôi học tiếng Việt ở Huế"), "tôi học tiếng việt ở huế"),
    ("Yoruba, marks in another order", "o\u0301\u0323dun", "\u1ecd\u0301dun"),
    ("Persian, percent", "۵٪ مردم", "5% مردم"),
    ("Ukrainian, a double quote", 'п"ять комп"ютерів', "п'ять комп'ютерів"),
    ("Hindi, a nasal of the next consonant", "हिन्दी का अङ्क", "हिंदी का अंक"),
    ("Vietnamese, two places of a tone", "Hoà và thuỷ quý, hoàn", "hòa và thủy quý hoàn"),
    ("Armenian, tones inside of words", "Ինչպե՞ս ես, բարև՜", "ինչպես ես բարև"),
    ("French, a space in thousands", "1\u202f000\u202f000 km", "1000000 km"),
    ("HTML", "l&rsquo;&eacute;t&eacute; &amp;amp; la for&ecirc;t&nbsp;!", "l'été & la forêt"),
    ("soft hyphens and marks of direction", "exam\u00adple \u200fof a\u2060b\ufeff", "example of ab"),
    ("full width", "ＡＢＣ １２３", "abc 123"),
    ("emoji and trade marks", "Bon❤️jour™ ➡️ merci", "bon jour merci"),
]  # fmt: skip


@pytest.mark.parametrize(("written", "heard"), [pair[1:] for pair in ALIKE], ids=[pair[0] for pair in ALIKE])
def test_what_is_read_alike_has_no_errors(written: str, heard: str) -> None:
    for form in ("NFC", "NFD"):
        errors = count_word_errors(unicodedata.normalize(form, written), heard, "en", "basic")
        assert (errors.wer or 0, errors.cer) == (0, 0)
    assert split_words(written) == split_words(heard)


def test_thousands_and_initials_are_read_alike_however_a_language_parts_them() -> None:
    for written in ("1.000.000", "1,000,000", "1 000 000", "1'000'000", "1\u00a0000\u00a0000"):
        assert count_word_errors(f"rund {written} Leute", "rund 1000000 Leute", "en", "basic").wer == 0
    assert count_word_errors("1.000,5", "1000,5", "en", "basic").wer == 0
    assert count_word_errors("z. B. das", "z.B. das", "en", "basic").wer == 0
    assert count_word_errors("3.1415 und 12.12.2024", "3 1415 und 12 12 2024", "en", "basic").wer == 0


def test_the_parts_of_a_persian_word_may_be_joined_or_have_a_space_or_a_joiner_between_them() -> None:
    forms = ("می\u200cخواهم کتاب\u200cهای خوب", "می خواهم کتاب های خوب", "میخواهم کتابهای خوب")
    for written in forms[:1]:
        for heard in forms:
            for pair in ((written, heard), (heard, written)):
                errors = count_word_errors(*pair, "en", "basic")
                assert (errors.wer, errors.cer) == (0, 0)
    assert count_word_errors(forms[0], "می خواهم کتاب های بد", "en", "basic").wer == pytest.approx(1 / 3)
    assert count_word_errors(forms[0], forms[0]).reference_length == 3


APART = [
    ("Hindi, vowels", "की कि के को का", "का का का का का"),
    ("Hindi, a nasal", "है", "हैं"),
    ("Bengali", "আমি তোমাকে ভালোবাসি", "আমা তামাকা ভালাবাসা"),
    ("Tamil", "தமிழ் மொழி மிகவும் பழமையானது", "தமழ் மாழா மாகாவாம் பாழாமாயானாது"),
    ("Telugu", "తెలుగు భాష", "తలగ భష"),
    ("Malayalam", "മലയാളം", "മലയളം"),
    ("Kannada", "ಕನ್ನಡ ಭಾಷೆ", "ಕನಡ ಭಷ"),
    ("Gujarati", "ગુજરાતી", "ગજરાતા"),
    ("Punjabi", "ਪੰਜਾਬੀ", "ਪਜਾਬਾ"),
    ("Thai, tone", "ไม่มีหมา", "ไมมีหม่า"),
    ("Thai, vowel", "แมวกิน", "แมวกน"),
    ("Lao", "ສະບາຍດີ", "ສະບາຍດ"),
    ("Khmer", "សួស្តី", "សស្តា"),
    ("Burmese", "မင်္ဂလာပါ", "မဂလပ"),
    ("Tibetan", "བོད་ཡིག", "བད་ཡག"),
    ("Vietnamese, tone", "ma má mà mả mã mạ", "ma ma ma ma ma ma"),
    ("Yoruba, tone", "ọkọ ọkọ́ ọkọ̀", "ọkọ ọkọ ọkọ"),
    ("French", "il a pêché", "il a péché"),
    ("French, a power", "10² fois", "102 fois"),
    ("Spanish", "el año", "el ano"),
    ("German", "schon fallen", "schön fällen"),
    ("Swedish", "hår", "här"),
    ("Polish", "łaska", "laska"),
    ("Czech", "byt", "být"),
    ("Hungarian", "kor kór kör kőr", "kor kor kor kor"),
    ("Turkish", "kır kir", "kir kir"),
    ("Russian", "мой", "мои"),
    ("Ukrainian", "їжак", "іжак"),
    ("Greek", "νόμος νομός", "νομός νόμος"),
    ("Arabic, letters", "قلب كلب", "كلب قلب"),
    ("Dhivehi, its vowels are no option", "ދިވެހި", "ދަވަހަ"),
    ("Japanese, voiced", "かき", "がき"),
    ("Korean", "개", "게"),
]


@pytest.mark.parametrize(("written", "heard"), [pair[1:] for pair in APART], ids=[pair[0] for pair in APART])
def test_words_that_differ_in_marks_or_vowels_are_errors(written: str, heard: str) -> None:
    for form in ("NFC", "NFD"):
        errors = count_word_errors(written, unicodedata.normalize(form, heard), "en", "basic")
        assert errors.cer > 0
        assert errors.wer is None or errors.wer > 0
    assert split_words(written) != split_words(heard)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("यह हिन्दी में लिखा हुआ एक वाक्य है", 8),
        ("தமிழ் மொழி மிகவும் பழமையானது", 4),
        ("مُحَمَّدٌ ذَهَبَ إِلَى المَدْرَسَةِ", 4),
        ("আমি তোমাকে ভালোবাসি", 3),
        (unicodedata.normalize("NFD", "été à la forêt"), 4),
        ("ọ̀rọ̀ ẹ̀kọ́", 2),
    ],
)
def test_a_word_is_one_word_wherever_words_are_counted(text: str, words: int) -> None:
    assert len(split_words(text)) == words
    assert count_length(text) == words
    assert count_word_errors(text, "", "en", "basic").reference_length == words
