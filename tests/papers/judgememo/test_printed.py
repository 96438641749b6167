"Files that are called as in print: one row a printed number, new judges behind the recorded ones, how many scores."
import math

import pandas as pd
import pytest

from factlib.core.records import BadInput
from factlib.papers.judgememo.live import drawn_documents, live_bars, live_setups, told_apart
from factlib.papers.judgememo.main_tables import TABLES, by_definition
from factlib.papers.judgememo.printed import layout, main_counts, main_table, printed_table
from factlib.report.published import published

PRINTED = published('judgememo')

def scores(judge, short, long, metric='fluency', fault='43', levels=('2000', 'full')):
    "Untouched texts get 4; `short`, `long`: what the damaged texts a, b, c lose (None: no score)."
    return pd.DataFrame([dict(evaluator=judge, metric=metric, group=g, variant=v, level=level,
                              value=4. if v == 'gold' else None if lost is None else 4 - lost)
                         for level, losses in zip(levels, (short, long)) for g, lost in zip('abc', losses)
                         for v in ('gold', fault)])

def test_a_new_judge_stands_behind_the_recorded_ones():
    mine, known = scores('mine', (1, 2, 3), (1, 1, None)), scores('LI', (1, 1, 2), (0, 0, 1))
    rows = main_table('A.13', PRINTED['A.13'], mine, known)
    assert len(rows) == len(PRINTED['A.13'].cells) + 1 # one t of one judge and task
    own = rows[rows.model == 'mine'].iloc[0]
    # -1 - -1 = 0 and -2 - -1 = -1: mean -1/2, sd sqrt(1/2), over sqrt(2)
    assert own.here == pytest.approx(-.5/(math.sqrt(.5)/math.sqrt(2))) and (own.asked, own.scored) == (3, 2)
    assert math.isnan(own.published) and own.variant == '43' and own.metric == 'fluency'
    said = rows[(rows.model == 'LN-noT') & (rows.variant == '43')].iloc[0]
    assert said.published == -1.219 and math.isnan(said.here) and said.why.endswith('are not here, or hold no score.')
    # LI's differences are all -1
    assert math.isnan(rows[(rows.model == 'LI') & (rows.variant == '43')].here.iloc[0])
    gold = main_table('5.1', PRINTED['5.1'], scores('mine', (1, 2, 3), (1, 1, None), levels=('60', 'full')), short='60')
    own = gold[gold.model == 'mine'].set_index('length or delta')
    assert own.here.to_dict() == {'60': 4, 'full': 4, 'delta': 0} and set(own.scored) == {3}
    assert layout(gold)['60, fluency'].tolist() == [4]

def test_a_judge_that_said_nothing_has_its_rows_with_what_was_asked():
    mute = scores('mute', (1, 2, 3), (1, 1, 1))
    mute.loc[mute.level == 'full', 'value'] = None
    for name, length in (('5.1', 'length or delta'), ('A.13', 'variant')):
        own = main_table(name, PRINTED[name], mute).query('model == "mute"').set_index(length)
        whole = own.loc[['full', 'delta'] if name == '5.1' else ['43']]
        assert whole.here.isna().all() and set(whole.asked) == {3} and set(whole.scored) == {0}
        assert set(whole.why) == {'0 of 3 scores give no number.'}
    assert layout(main_table('A.13', PRINTED['A.13'], mute)).empty

def test_several_judges_have_means_over_them():
    two = pd.concat([scores('A', (1, 2, 3), (1, 1, 1)), scores('B', (2, 2, 4), (1, 1, 1))])
    rows = main_table('A.12', PRINTED['A.12'], two)
    over = rows[rows.model == 'the judges of this run'].set_index('number').here
    # t of -1, -2, -3 is -2*sqrt(3); of -2, -2, -4: mean -8/3, sd 2/sqrt(3)
    a, b = -2*math.sqrt(3), -8/3/(2/math.sqrt(3)/math.sqrt(3))
    assert over['tavg'] == pytest.approx((a + b)/2) and over['tstd'] == pytest.approx(abs(a - b)/2)
    assert layout(rows).model.tolist() == ['A', 'B']

def test_recorded_tables_are_those_of_the_definition():
    setups = dict(vanilla=scores('LI', (1, 1, 2), (0, 1, 1)), judgememo=scores('Q-T', (1, 1, 2), (0, 1, 1)))
    cells, counts = by_definition(setups), main_counts(setups)
    for name in (n for n in TABLES if n != 'fig5.2'):
        setup = 'vanilla' if name in ('5.1', 'A.12', 'A.13') else 'judgememo'
        rows = main_table(name, PRINTED[name], setups[setup].iloc[:0], setups[setup])
        keys = list(PRINTED[name].cells)
        assert {k: x for k, x in zip(keys, rows.here) if not math.isnan(x)} == pytest.approx(cells[name])
        assert set(counts[name].values()) <= {(3, 3)} and len(rows) == len(keys)
    assert counts['fig5.2']['5.2c|LI|43'] == (3, 3) == counts['fig5.2']['5.2d|Q-T|43']

def test_each_missing_number_has_its_reason():
    table = PRINTED['3.1']
    rows = printed_table(table, dict(documents=65), {'chars': 'Nobody counted.'})
    assert rows.set_index('statistic').why['chars'] == 'Nobody counted.' and rows.why[0] == ''
    assert all(rows.why[1:] != '')

def test_models_and_draws_are_told_apart_and_never_averaged():
    frame = lambda name, value: pd.DataFrame(dict(example_id=['x'], evaluator='e', value=[value], benchmark=name))
    both = pd.concat([frame('texts, seed 0', 1.), frame('texts, seed 1', 3.)])
    asked = [('vanilla', f'vanilla, {m}', m, both) for m in ('A', 'B')]
    frames, judges = told_apart(asked)
    assert [f.evaluator.iloc[0] for f in frames] == judges.evaluator.tolist() and len(set(judges.evaluator)) == 4
    assert judges.evaluator[0] == 'vanilla, A, texts, seed 0' and [f.value.iloc[0] for f in frames] == [1, 3, 1, 3]
    table = pd.concat([scores(name, (1, 2, 3), (1, 1, 1)) for name in judges.evaluator])
    setups = live_setups(table, judges)
    assert setups['vanilla'].evaluator.unique().tolist() == [f'{m}, texts, seed {s}' for m in 'AB' for s in (0, 1)]
    assert not len(setups['judgememo'])
    bars = live_bars(setups)
    assert bars.panel.nunique() == 2 and len(bars[bars.panel.str.startswith('a')]) == 4

def test_documents_are_drawn_close_to_the_average():
    gold = pd.DataFrame([dict(group=g, variant='gold', value=x) for g, x in zip('abcde', (1., 3., 3.5, 4., None))])
    assert set(drawn_documents(gold, 2).query('drawn').group) == {'b', 'c'} # the average of four is 2.875
    assert drawn_documents(gold, 2, seed=1).group.iloc[-1] == 'e'
    with pytest.raises(BadInput, match='5 documents are to be drawn, and only 4'): drawn_documents(gold, 5)
