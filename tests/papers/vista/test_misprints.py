"The audit of VISTA's print, by hand and against scipy's binomial test."
import pytest
from scipy.stats import binomtest

from factlib.papers.vista.misprints import COMPARISONS, SETS, TURNS, claims, contradictions, pair_rows, stars
from factlib.papers.vista.misprints import vista_audit
from factlib.report.published import published

@pytest.fixture(scope='module')
def audit(): return vista_audit().set_index(['table', 'cell'])

def test_the_print():
    tables = published('vista')
    sizes = {'1': 96, '1 superscripts': 96, '2': 8, '3': 13, '4': 6, '5': 27, '6': 4,
             '7': 120, '8': 120, '9': 120, '10': 120, 'section 3': 5, 'section 4.1': 5, 'section 5': 16, 'section 7': 2}
    assert {name: len(t.cells) for name, t in tables.items()} == sizes
    row = lambda table, name: [tables[table].cells[f'{name}|{column}'] for column in ('delta', 'p', 'stars', 'b', 'c')]
    assert row('7', 'GPT-5|VISTA - LLM-as-Judge') == [2.8, .201473, 0, 61, 77]
    assert row('10', 'Mistral-7B|LLM-as-Judge - FActScore') == [-1.98, .112904, 0, 346, 390]
    assert row('9', 'Llama-8B|LLM-as-Judge - FActScore') == [-9.7, .000705, 3, 132, 194]
    first = tables['1'].cells
    assert [first[f'Qwen-32B|{d}|LLM-as-Judge'] for d in TURNS] == [46.4, 46.8, 47.73, 35.89]
    assert first['Mistral-7B|FADE|VISTA'] == 66.04
    marks = list(tables['1 superscripts'].cells.values())
    # row by row: VISTA's marks and the judge's; FActScore's
    assert marks.count(1) == 6 + 9 + 9 + 10 + 9 + 8 + 9 + 8 and marks.count(-1) == 2 + 2 + 4
    assert sum(tables['4'].cells.values()) == 227 and tables['5'].cells['majority baseline|turn accuracy'] is None

def test_p_values_against_scipy(audit):
    cells, far = published('vista'), []
    for table in SETS:
        for row in dict.fromkeys(cell.rsplit('|', 1)[0] for cell in cells[table].cells):
            b, c, p = (cells[table].cells[f'{row}|{x}'] for x in ('b', 'c', 'p'))
            exact = binomtest(b, b + c).pvalue
            assert audit.by_definition[table, f'{row}|p'] == pytest.approx(exact, abs=1e-12)
            if abs(exact - p) > .002: far.append((table, row))
    assert far == [('7', 'Mistral-7B|LLM-as-Judge - FActScore'), ('8', 'Qwen-8B|LLM-as-Judge - FActScore')] # 94 of 96

def test_the_two_others_follow_from_their_neighbours(audit):
    "V-J is ahead by 49 and V-F by 30, so J-F by -19: c is 89, not 69. And 81 - 52 = 29: c is 45, not 46."
    assert audit.by_recipe['7', 'Mistral-7B|LLM-as-Judge - FActScore|p'] == pytest.approx(
        binomtest(70, 159).pvalue) == pytest.approx(.153215, abs=1e-6)
    assert audit.by_recipe['8', 'Qwen-8B|LLM-as-Judge - FActScore|p'] == pytest.approx(
        binomtest(74, 119).pvalue) == pytest.approx(.009966, abs=1e-6)
    assert audit.by_definition['7', 'Mistral-7B|LLM-as-Judge - FActScore|c'] == 89
    assert audit.by_definition['8', 'Qwen-8B|LLM-as-Judge - FActScore|c'] == 45

def test_differences(audit):
    deltas = audit[[cell.endswith('|delta') for _, cell in audit.index]]
    assert len(deltas) == 96 and ((deltas.published - deltas.by_definition).abs() > .11).sum() == 30
    wrong = deltas[deltas.published*deltas.by_definition < 0]
    assert [(table, cell.rsplit('|', 1)[0]) for table, cell in wrong.index] == [('7', 'GPT-5|VISTA - LLM-as-Judge'),
                                                                                ('7', 'GPT-5|VISTA - FActScore'),
        ('7', 'Mistral-7B|LLM-as-Judge - FActScore'), ('9', 'GPT-5|LLM-as-Judge - FActScore'),
                                                                                ('10', 'Llama-8B|LLM-as-Judge - '
                                                                                       'FActScore')]
    assert all('other sign' in note for note in wrong.note)
    assert audit.by_definition['7', 'GPT-5|VISTA - FActScore|delta'] == pytest.approx(100*(64 - 89)/500)
    assert audit.by_recipe['7', 'GPT-5|VISTA - FActScore|delta'] == pytest.approx(60.2 - 59.2)
    assert audit.note['7', 'Qwen-8B|LLM-as-Judge - FActScore|delta']
    assert audit.status['7', 'Qwen-8B|LLM-as-Judge - FActScore|delta'] == 'differs'

def test_rows_that_contradict_their_neighbours(audit):
    odd = pair_rows().query('odd')
    assert list(zip(odd.table, odd.model, odd.comparison)) == [('7', 'Mistral-7B', COMPARISONS[2]),
                                                               ('8', 'Qwen-8B', COMPARISONS[2]),
                                                               ('10', 'DeepSeek', COMPARISONS[1]),
        ('10', 'Llama-8B', COMPARISONS[2]), ('10', 'Qwen-32B', COMPARISONS[1]), ('10', 'Qwen-8B', COMPARISONS[1])]
    # printed 168 and 68
    assert audit.by_definition['10', 'DeepSeek|VISTA - FActScore|c'] == 186
    assert audit.by_definition['10', 'Qwen-32B|VISTA - FActScore|c'] == 168
    assert 'Llama-70B has the same b and c' in audit.note['10', 'Llama-8B|LLM-as-Judge - FActScore|c']

def test_superscripts(audit):
    wrong = audit.loc['1 superscripts'].query("status != 'agrees'")
    assert set(wrong.index) == {'DeepSeek|AIS|VISTA - FActScore', 'Mistral-7B|AIS|VISTA - FActScore',
                                'Llama-70B|BEGIN|VISTA - LLM-as-Judge',
        'GPT-4o|FADE|VISTA - LLM-as-Judge', 'DeepSeek|FADE|VISTA - LLM-as-Judge', 'Llama-70B|FADE|VISTA - LLM-as-Judge'}
    assert set(wrong.status) == {'differs'} and wrong.note.str.contains('p = 0.').all() and (wrong.published == 1).all()
    assert (wrong.by_definition == 0).all()

def test_other_tables(audit):
    # 383/639 is 59.94, 1259/2229 is 56.48
    assert audit.loc['1'].status.value_counts().to_dict() == {'agrees': 94, 'differs': 1, 'rounding': 1}
    assert audit.by_definition['1', 'GPT-5|FADE|FActScore'] == pytest.approx(100*383/639)
    assert audit.by_definition['1', 'Qwen-8B|FaithDial|LLM-as-Judge'] == pytest.approx(100*1259/2229)
    assert [round(audit.by_definition['2', f'{pair}|f1'], 3)
            for pair in ('A1-A2', 'A1-A3', 'A2-A3')] == [.906, .854, .812]
    assert not (audit.loc['2'].status == 'differs').any() and not (audit.loc['section 5'].status == 'differs').any()
    percents = audit.loc['3'].loc[[f'{label}|percent' for label in ('verifiable', 'lacking evidence',
                                                                    'out of scope', 'abstention', 'contradicted')]]
    assert percents.status.tolist() == ['differs']*4 + ['agrees']
    assert percents.by_definition.round(1).tolist() == [47.1, 24.0, 25.6, 2.5, .9]
    assert audit.by_definition['5', 'majority baseline|macro-F1'] == pytest.approx(100*2*(418/888)/(1 + 418/888)/5)
    assert audit.by_recipe['5', 'majority baseline|macro-F1'] == 13
    assert audit.by_definition['section 5', 'turns labelled otherwise, percent'] == pytest.approx(100*60/227)
    assert audit.by_definition['section 5', 'of these newly unverifiable, percent'] == pytest.approx(100*52/60)
    assert audit.by_definition['section 3', 'step 3|said'] == 8
    assert audit.status['section 3', 'step 3|said'] == 'differs'
    assert audit.status['section 3', 'step 1|said'] == 'agrees'
    assert audit.status['6', 'no dialogue history (steps 1, 2)'] == 'rounding' # 1722/2229 is 77.25

def test_all_cells_are_there_in_their_order(audit):
    assert list(audit.index) == [(name, cell) for name, table in published('vista').items() for cell in table.cells]
    found = contradictions()
    assert found.status.value_counts().to_dict() == {'recipe_only': 34, 'differs': 27, 'unexplained': 1}
    assert found.cell.str.endswith('|delta').sum() == 31 # of 96: those that rounding does not explain
    assert (found.note != '').sum() == len(found) - 1

def test_stars(): assert [stars(p) for p in (.0009, .001, .0099, .01, .0499, .05, 1)] == [3, 2, 2, 1, 1, 0, 0]

def test_claims():
    table = claims()
    assert table.holds.tolist() == [62, 55, 1, 7, 0] and table.of.tolist() == [64, 64, 1, 8, 1]
    assert '83.26' in table.against[3] and 'Llama-70B (79.74)' in table.against[3] # 137 + 34 + 18 of 227 turns
