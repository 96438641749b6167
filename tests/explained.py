"""Does every estimate in a table have an interval or a bound, or a word why not? An interval stands in two columns
(`auc_low`, `auc_high`; `kappa, low`; `ci_low` behind what it is of)."""
from factlib.core.records import is_missing

WHY = ('why', 'note')
# Ends that are no interval of an estimate: of missing scores, as in print, of ranks, of what can't be told apart
OTHER = ('worst', 'drawn', 'rows', 'rank', 'bound', 'overall')

def estimates(table):
    "(estimate, low, high): columns that belong together."
    columns, found = list(table), []
    for low in columns:
        name = low[:-3].rstrip(' ,_')
        high = f'{low[:-3]}high'
        if not low.endswith('low') or high not in columns or name in OTHER: continue
        if name not in columns: name = 'jaccard' if 'jaccard' in columns else columns[columns.index(low) - 1]
        found.append((name, low, high))
    return found

def counted(table):
    "(estimates in columns that have intervals, a line for each one without interval, bound and reason)."
    n, unexplained = 0, []
    for name, low, high in estimates(table):
        for place, row in enumerate(table.to_dict('records')):
            if is_missing(row[name]) or row[name] == '': continue
            n += 1
            lacks = is_missing(row[low]) and is_missing(row[high])
            if lacks and not any(not is_missing(row.get(c)) and str(row[c]).strip() for c in WHY):
                unexplained.append(f'row {place}: {name} {row[name]}')
    return n, unexplained
