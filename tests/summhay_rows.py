"SummHay's rows as a frame, as a user would make it from the public file."
import json

import pandas as pd

POINTS = dict(full_coverage=1., partial_coverage=.5, no_coverage=0.,
              fully_covered=1., partially_covered=.5, not_covered=0.)
JUDGES = ('gemini-1.5-pro', '9fs_gpt-4o', 'gpt-4o', 'claude3-opus', 'claude3-haiku', 'gpt3.5')

def summhay_frame(path):
    "A row an insight: summary (its item), subtopic, writer, insight, bullets, people, and the six judges."
    rows = []
    for place, summary in enumerate(json.loads(path.read_text(encoding='utf-8'))):
        text = {i['insight_id']: i['insight'] for i in summary['reference_insights']}
        said = {name: {p['insight_id']: p['coverage'] for p in value} for name, value in summary.items()
                if name.startswith('predictions_')}
        writer = summary['summkey'].rsplit('_', 1)[-1]
        for a in summary['annotation']:
            row = dict(summary=f'{place}', subtopic=summary['subtopic_id'], writer=writer,
                       insight=text[a['insight_id']], bullets='\n'.join(summary['summary']),
                       people=POINTS[a['coverage'].lower()])
            for judge in JUDGES:
                name = f'predictions_{judge}' if judge.startswith('9fs') else f'predictions_prompted_{judge}'
                row[judge] = POINTS[said[name][a['insight_id']].lower()]
            rows.append(row)
    return pd.DataFrame(rows)
