"The language of texts, decided together; and that a wrong one is no score. All texts are ours."
import json

import pytest
from click.testing import CliRunner

from factlib.evaluators.entailment.rules import RuleEntailment
from factlib.evaluators.entailment.summac import SummaCZS
from factlib.cli import app
from factlib.core.records import BadInput, Example
from factlib.evaluators.base import Evaluator, evaluate
from factlib.runs.costs import absence_lines
from factlib.runs.judging import judges_for
from factlib.text.words import language_code, languages_of, languages_said

ANSWERS = {
    'de': ['Der Fuchs lief in den Wald.', 'Die Henne war nicht im Stall.', 'Nein.', 'Sie kam erst am Abend zurück.',
           'Das Tor war mit einem Seil verschlossen.', 'Er hat es auf dem Hof gefunden.'],
    'fr': ['Le renard est parti dans la forêt.', 'La poule n’était pas dans la cour.', 'Non.',
           'Il a vu les oies sur le pont.',
           'Elle est revenue avec une corde.', 'Les plumes étaient sous la table.'],
    'es': ['El zorro se fue por la noche.', 'La gallina no estaba en el corral.', 'No.', 'Los gansos vieron al hombre.',
           'Ella volvió con una cuerda.', 'Las plumas estaban en el suelo.'],
    'ru': ['Лиса убежала в лес.', 'Курицы не было во дворе.', 'Нет.', 'Она вернулась вечером.'],
    'zh': ['狐狸跑进了森林。', '母鸡不在院子里。', '没有。', '她晚上才回来。'],
    'ar': ['هرب الثعلب إلى الغابة.', 'لم تكن الدجاجة في الفناء.', 'لا.', 'عادت في المساء.'],
    'en': ['The fox ran into the wood.', 'The hen was not in the yard.', 'No.', 'She did not come back until evening.',
           'He found it on the farm.', 'The gate was shut with a rope.'],
}
ENGLISH_ONLY = ['function_words', 'tense', 'out_of_vocabulary']

def examples(texts): return [Example(str(i), target=text, source='A fox ran.') for i, text in enumerate(texts)]

@pytest.mark.parametrize('code', ANSWERS)
def test_answers_of_one_sentence_show_their_language_together(code):
    assert languages_of(ANSWERS[code]) == [code]*len(ANSWERS[code])

def test_one_row_in_another_language_keeps_it():
    german = 'Die Henne war nicht im Stall, und der Fuchs lief in den Wald.'
    assert languages_of([*ANSWERS['en']*4, german]) == ['en']*24 + ['de']
    assert languages_of([*ANSWERS['en']*4, ANSWERS['zh'][0]*3]) == ['en']*24 + ['zh']

def test_a_quotation_changes_nothing():
    text = 'She read it out: "Der Fuchs lief in den Wald." It was the first line of a book that they had in the house.'
    assert languages_of([text]) == ['en'] and languages_of([text, *ANSWERS['en']]) == ['en']*7

def test_a_group_lends_its_language_to_its_short_texts():
    texts, groups = ANSWERS['en']*3 + ANSWERS['de'], ['english']*18 + ['german']*6
    assert languages_of(texts, groups) == ['en']*18 + ['de']*6

def test_half_and_half_is_no_language():
    texts = ['Ja.', *ANSWERS['de']*3, *ANSWERS['en']*3]
    long = ['Die Henne war nicht im Stall, und der Fuchs lief in den Wald.',
            'She was not in the house when it came to the door.']
    assert languages_of(['Ja.', *long*3]) == [None] + ['de', 'en']*3 and len(languages_of(texts)) == 37

@pytest.mark.parametrize('texts', [['🦊', '🐔'], ['42', '1,000'], ['', ' \n'], ['Paris', 'Rio de la Plata', 'El Paso'],
                                   ['\ud800', '\x00']])
def test_what_shows_no_language_has_none(texts):
    assert languages_of(texts) == [None]*len(texts)
    assert languages_of([*ANSWERS['en'], *texts]) == ['en']*(6 + len(texts))
    assert languages_said(languages_of(texts)) == f'unknown {len(texts)} of {len(texts)}'

@pytest.mark.parametrize('change', [str.upper, lambda t: t.replace('e', 'c'), lambda t: ' '.join(reversed(t.split()))])
def test_noise_makes_no_other_language(change):
    assert set(languages_of([change(text) for text in ANSWERS['en']*5])) <= {'en', None}

@pytest.mark.parametrize('code', [code for code in ANSWERS if code != 'en'])
def test_who_knows_only_english_gives_no_score(code):
    """Not for one of the answers, and for all the same reason; who knows any language judges them."""
    for judge in judges_for(ENGLISH_ONLY):
        frame = evaluate(judge, examples(ANSWERS[code]), progress=False)
        assert set(frame.absence) == {'inapplicable'} and {e['language'] for e in frame.evidence} == {code}, judge.name
    assert evaluate(judges_for('length')[0], examples(ANSWERS[code]), progress=False).value.notna().all()

def test_english_is_judged_and_a_language_can_be_given():
    judge, = judges_for('function_words')
    judged = lambda code, language=None: evaluate(judge, examples(ANSWERS[code]), progress=False, language=language)
    assert judged('en').value.notna().all() and judged('de').value.isna().all()
    assert judged('de', 'English').value.notna().any() and not any('language' in e for e in judged('de', 'en').evidence)
    assert judged('en', 'de').absence.tolist() == ['inapplicable']*6
    with pytest.raises(BadInput, match='no language'): judged('en', 'the usual one')

def test_a_source_in_another_language():
    english = 'The fox was not in the wood, and she had been in the house.'
    german = 'Der Fuchs war nicht in dem Wald, und die Henne hatte ihn auf dem Hof gesehen.'
    judge = SummaCZS(RuleEntailment('words'))
    frame = evaluate(judge, [Example('a', target=english, source=german)], progress=False)
    assert frame.evidence[0]['language'] == 'de' and 'the source is in German (de)' in frame.evidence[0]['detail']

def test_a_vocabulary_brings_its_language():
    from factlib.evaluators.offline.fluency import OutOfVocabulary
    from factlib.text.words import _COMMON
    german = OutOfVocabulary(_COMMON['de'] | {'fuchs', 'wald', 'henne', 'stall', 'lief'})
    assert german.languages == ('de',) and OutOfVocabulary({'fox', 'ran'}).languages is None
    whole = evaluate(german, examples(ANSWERS['de']), progress=False)
    assert whole.value[1] == 1 and not any('language' in e for e in whole.evidence) # "war nicht im" are in it
    assert {e['language'] for e in evaluate(german, examples(ANSWERS['en']), progress=False).evidence} == {'en'}

def test_languages_must_be_a_tuple():
    class Wrong(Evaluator):
        name, signature, languages = 'wrong', 'wrong', 'en'
        def judge(self, example): return self.judgement(example, 1)
    with pytest.raises(BadInput, match='tuple of ISO codes'): evaluate(Wrong(), examples(['a']), progress=False)

@pytest.mark.parametrize('given, code', [('de', 'de'), ('German', 'de'), ('de_AT', 'de'), (' EN ', 'en'),
                                         ('gsw', 'gsw')])
def test_language_codes(given, code): assert language_code(given) == code

def test_a_german_file(tmp_path):
    """The language is said and kept, absences are one line, `--language` decides otherwise."""
    path = tmp_path/'answers.jsonl'
    path.write_text('\n'.join(json.dumps(dict(response=text)) for text in ANSWERS['de']*4), encoding='utf-8')
    command = ['evaluate', str(path), '--with', 'function_words,tense,length', '--no-page']
    command += ['--out', str(tmp_path/'out')]
    told = CliRunner().invoke(app, command)
    assert told.exit_code == 4 and 'Language of the texts of answers_file: German (de) 24 of 24.' in told.output
    lines = [line for line in told.output.splitlines() if 'no score' in line]
    assert len(lines) == 1 and 'inapplicable, 24 of 24 texts: function_words, tense: only English (en)' in lines[0]
    findings = [f['text'] for f in json.loads((tmp_path/'out/result.json').read_text())['findings']]
    assert 'Language of the texts of answers_file: German (de) 24 of 24.' in findings
    told = CliRunner().invoke(app, [*command, '--language', 'English'])
    assert 'English (en), as was given' in told.output and 'function_words: 0 of' not in told.output
    assert json.loads((tmp_path/'out/result.json').read_text())['parameters']['language'] == 'en'
    wrong = CliRunner().invoke(app, [*command, '--language', 'any old one'])
    assert isinstance(wrong.exception, BadInput)

def test_reasons_that_differ_only_in_numbers_are_one():
    judge, = judges_for('rouge2')
    frame = evaluate(judge, [Example(str(i), target='x ' * i, source='a b') for i in (0, 1, 2)], progress=False)
    assert [line.split(':')[0] for line in absence_lines(frame)] == ['inapplicable, 1 of 3 texts']*2
