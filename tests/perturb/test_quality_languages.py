"""German, Arabic and Chinese texts through all fifteen kinds and through `build`: damaged rightly, or one sentence; and
files that are no texts."""
import pytest

from factlib.benchmarks.coflueval import build, grid
from factlib.benchmarks.gutenberg import clean, corpus
from factlib.perturb.base import MANIPULATIONS, operations, units
from factlib.perturb.quality import manipulate
from factlib.text.words import language_of
from factlib.text.spans import CHAPTER

GERMAN = ('Der Mann ging in die Stadt, und es war nicht mehr hell. Er hatte den ganzen Tag auf dem Feld gearbeitet, '
          'aber er war noch nicht müde. ',
          'Die Frau sah ihn von dem Fenster aus und sagte, dass er zu spät sei. Das war ihm gleich, denn er hatte Anna '
          'in Berlin getroffen. ',
          'Am Abend sprach Karl mit Anna über die Reise nach Hamburg, und sie war mit dem Plan nicht einverstanden, '
          'weil es zu kalt war. ')
ARABIC = ('ذهب الرجل إلى المدينة في المساء وكان الجو باردا جدا. لم يكن متعبا لأنه نام طوال النهار في البيت الكبير قرب '
          'النهر. ',
          'رأته المرأة من النافذة وقالت إنه تأخر كثيرا. لم يهتم بذلك لأنه قابل صديقه في القاهرة صباحا. ',
          'وفي الليل تحدث أحمد مع فاطمة عن السفر إلى دمشق. لم توافق على الخطة لأن الطريق طويل. ')
CHINESE = ('那个男人晚上进城去了，天气非常冷。他一点也不累，因为他白天在河边的大房子里睡了一整天。', '女人从窗户里看见了他，说他来得太晚了。他不在乎，因为早上他在北京遇见了朋友。',
           '夜里李明和王芳谈起去上海的旅行。她不同意这个计划，因为路太远了。')

def long(paragraphs, times=12): return '\n\n'.join(p.strip() + f' ({i})' for i in range(times) for p in paragraphs)

TEXTS = {'de': long(GERMAN), 'ar': long(ARABIC), 'zh': long(CHINESE)}
DONORS = {k: [long(p, 9).replace('(', '[').replace(')', ']')]
          for k, p in dict(de=GERMAN, ar=ARABIC, zh=CHINESE).items()}
ENGLISH_RULES = {'22', '24', '31', '32', '42'}  # have English words in them
BY_MODEL = {'21', '43'}                         # any language, with a model of it

@pytest.mark.parametrize('language', TEXTS)
def test_texts_are_told_apart(language): assert language_of(TEXTS[language]) == language

@pytest.mark.parametrize('kind', sorted(MANIPULATIONS))
@pytest.mark.parametrize('language', TEXTS)
def test_each_kind_does_it_rightly_or_says_one_sentence(kind, language):
    text, takes = TEXTS[language], MANIPULATIONS[kind].takes
    done = manipulate(text, kind, **dict(donors=DONORS[language]) if 'donors' in takes else {})
    if kind in ENGLISH_RULES | BY_MODEL:
        assert done.refused and done.refused.reason == 'language' and done.text == text
        assert f"'{language}'" in done.refused
        assert str(done.refused).count('.') == 1
    # e.g. typos need Latin letters, chapters a heading
    elif done.refused: assert done.refused.reason.startswith('too_') and done.text == text
    else:
        assert done.edits and done.revert() == text
        if kind not in ('41',): # nothing came in that the text or its donors don't have
            own = set(text + ''.join(DONORS[language]))
            assert set(done.text) <= own

def test_a_model_of_the_users_opens_a_kind(tmp_path):
    import spacy
    nlp = spacy.blank('de')
    nlp.add_pipe('sentencizer')
    nlp.to_disk(tmp_path/'de_tiny')
    done = manipulate(TEXTS['de'], '43', model=str(tmp_path/'de_tiny'))
    assert not done.refused and done.edits and done.revert() == TEXTS['de']
    assert manipulate(TEXTS['de'], '43', doc=nlp(TEXTS['de'])).edits == done.edits
    # English rules stay English
    assert manipulate(TEXTS['de'], '42', model=str(tmp_path/'de_tiny')).refused.reason == 'language'
    own = ['Im Jahr 2021 rief er sie mit dem Telefon an.', 'Sie sah es im Fernsehen.',
           'Er schrieb eine Mail.', 'Das Internet war aus.']
    assert own[0] in manipulate(TEXTS['de'], '24', sentences=own, intensity=4).text # words of one's own open it, too

def test_english_stays_as_it_was_and_doubt_is_no_refusal():
    english = long(
        ('The man went to the town, and it was not light. He had worked all day, but he was not tired at all. ',
         'She saw him from the window and said that it was late. '))
    assert not manipulate(english, '24').refused and language_of(english) == 'en'
    assert not manipulate('Abc def ghi jkl mno pqr stu vwx yz abc def ghi. ' * 40, '24', intensity=1).refused

def test_build_on_other_languages_and_on_files_that_are_no_texts(tmp_path):
    for name, text in TEXTS.items(): (tmp_path/f'{name}.txt').write_text(text, encoding='utf-8')
    (tmp_path/'wide.txt').write_bytes(TEXTS['de'].encode('utf-16'))
    (tmp_path/'wide2.txt').write_bytes('It was late in the evening. '.encode('utf-16-le') * 50)
    (tmp_path/'picture.txt').write_bytes(b'\x89PNG\r\n\x1a\n' + bytes(range(256)) * 20)
    (tmp_path/'latin.txt').write_bytes('Der Mann ging \xfcber die Br\xfccke, und es war nicht hell. '.encode(
        'cp1252') * 40)
    (tmp_path/'zero.txt').symlink_to('/dev/zero')
    (tmp_path/'outside.txt').symlink_to('/etc/hostname')
    texts = corpus(tmp_path, language=None)
    assert {x.id for x in texts.left_out if x.reason == 'unreadable'} == {'wide', 'wide2', 'picture', 'zero', 'outside'}
    assert [d.id for d in texts] == ['ar', 'de', 'latin', 'zh'] and 'über' in texts.documents[2].text
    built = build(texts, grid(tuple(sorted(ENGLISH_RULES | {'41', '17'}))), (None,), progress=False)

    assert built.benchmark.refused and all('\0' not in e.target for e in built.benchmark)
    assert {e.variant for e in built.benchmark} <= {'gold', '41', '17'}

def test_notes_in_braces_go_like_those_in_brackets():
    assert clean('He went home {see page 4} and slept [note] well.',
                 breaks=False).text == 'He went home and slept well.'

@pytest.mark.parametrize('line,is_heading',
                         [('CHAPTER IV. - WHAT THE TEACHERS DID.', True),
                          ('PART I - CAUSES', True), ('Chapter 3', True),
                          ('Book the First', True), ('CHAPTER: The Fox', True), ('Act I. Scene 2', True),
('book I had read', False), ('letter the gist of which was the desire to know', False),
                          ('scene 1). The town of Saffron', False), ('part the actual church of this', False)])
def test_prose_is_no_heading(line, is_heading):
    assert bool(CHAPTER.search(f'Before it.\n{line}\nafter it.')) == is_heading

def test_the_b_of_eq_3_23_is_a_parameter():
    english = long(('The man went to the town, and it was not light, for the lamps of the town were out. ',), 30)
    tokens = len(english.split())
    for bias in (0, 1, 3):
        assert len(manipulate(english, '24', bias=bias).edits) == operations(tokens, bias)
    assert len(manipulate(english, '24').edits) == operations(tokens, 1)

def test_sections_may_begin_later():
    text = '\n\n'.join(f'{i} ' + 'word ' * 300 for i in range(9))
    first, later = units(text, 'section', 3000), units(text, 'section', 3000, offset=1)
    assert first[0].start == 0 and later[0].start == text.index('1 word') and first != later
    assert manipulate(text, '14', scope='section', intensity=1, offset=1).edits
