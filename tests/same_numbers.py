"""Do the tables of experiments agree? A number of an evaluator on a benchmark has a key: who, on what, which metric and
estimand, which part of the judgement, of which draw, how many items, and what else parts the rows (difficulty, variant,
...). Two numbers with the same key have to be the same, in whatever tables they stand."""
from pathlib import Path

import pandas as pd

from factlib.core.records import is_missing
from factlib.metaeval.truth import together
from factlib.report.tables import read_table

# number -> columns of which one says what it estimates; none: its name does
NUMBERS = dict(auc=['estimand'], higher=['estimand'], estimate=['estimand', 'definition'], own=['statistic'],
               spearman=['estimand'], kendall=['estimand'], accuracy=[])
ALIASES = dict(benchmark='dataset', scored='n', groups='questions') # as some tables call it
PARTS = ['difficulty', 'variant', 'level', 'label', 'answered_by', 'stories', 'half', 'seed', 'split', 'model']
KEY = ['evaluator', 'benchmark', 'metric', 'part', 'draw', 'scored', *PARTS]
NO_MODEL = ('', 'no model', 'by rules')

def _named(table): return table.rename(columns={a: name for name, a in ALIASES.items() if name not in table})

def _in(column, table):
    if column == 'higher' and 'lower' in table: return False # two levels
    if column == 'own' and 'statistic' not in table: return False # claims of one's own
    return column in table and pd.api.types.is_numeric_dtype(table[column])

def found_in(table):
    "The numbers of evaluators that a table has: names of columns."
    return [c for c in NUMBERS if 'evaluator' in table and _in(c, table)]

def unsaid(table):
    "Which columns a table of evaluators' numbers lacks, without which nobody can say why another table has other ones."
    table, of = _named(table), found_in(table)
    lacks = [c for c in ('benchmark', 'draw', 'scored', 'groups') if of and c not in table]
    return lacks + sorted({names[0] for c in of if (names := NUMBERS[c]) and not set(names) & set(table)})

def _metric(column, said):
    if column == 'own': return together(said) # the same number as `estimate` of the small matrix
    if column in ('spearman', 'kendall'): return together(column).removesuffix('all texts together') + said
    return said or column

def numbers(table, where):
    "The numbers of a table, one row each, with `KEY`, `number` and `where`."
    table, rows = _named(table), []
    for column in found_in(table):
        percent = column in ('accuracy', 'auc') and table[column].max() > 1
        says = next((c for c in NUMBERS[column] if c in table), None)
        for row in table[table[column].notna()].to_dict('records'):
            key = {name: '' if is_missing(row.get(name)) else str(row[name]) for name in ('part', *PARTS)}
            if key['part'] == 'value': key['part'] = ''
            if key['model'] in NO_MODEL: key['model'] = ''
            key |= dict(evaluator=row['evaluator'], benchmark=row['benchmark'], draw=row['draw'],
                        scored=int(row['scored']), metric=_metric(column, row[says] if says else ''))
            rows.append(key | dict(number=row[column]/(100 if percent else 1), where=f'{where}: {column}'))
    return pd.DataFrame(rows, columns=[*KEY, 'number', 'where'])

def disagreements(found):
    "A sentence for each key of `numbers` whose numbers differ."
    said = []
    for _, same in found.groupby(KEY, sort=False):
        if same.number.max() - same.number.min() <= 1e-9: continue
        r, cells = same.iloc[0], '; '.join(f'{w} {x:.4f}' for w, x in zip(same['where'], same.number))
        said.append(f'{r.evaluator} on {r.benchmark} ({r.metric}, {r.draw}, {r.scored} scored): {cells}')
    return said

def tables_of(folder):
    "'EXPERIMENT/TABLE' -> the table, of each result in a folder of results."
    return {f'{p.parent.parent.name}/{p.stem}': read_table(p) for p in sorted(Path(folder).glob('*/tables/*.csv'))}
