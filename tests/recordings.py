"""Makes a data folder in the layout of the real recordings, from scores written down in a test. The replies are made
up; their form is the one the prompts ask for."""
from pathlib import Path

import pandas as pd

MODEL = {'LI': ('Llama-3.3-70B-Instruct', False), 'LN-noT': ('Llama-3_3-Nemotron-Super-49B-v1', False),
         'LN-T': ('Llama-3_3-Nemotron-Super-49B-v1', True),
         'Q-noT': ('Qwen3-32B', False), 'Q-T': ('Qwen3-32B', True)}

def reply(fluency, coherence):
    "A reply with both scores, either of which may be None: then it is cut off before it."
    if coherence is None: return '1) Fluency Issues:\n- [SPELLING] "te', 'length'
    if fluency is None: return f'3) FINAL Coherence Score: {coherence}\n4) FINAL Flu', 'length'
    return (f'1) Fluency Issues: none\n2) Coherence Issues: none\n3) FINAL Coherence Score: {coherence}\n4) FINAL '
            f'Fluency Score: {fluency}', 'stop')

def write(folder, vanilla=(), judgememo=()):
    """Rows are (model, length, variant, document, fluency, coherence); for judgememo the configuration may follow as a
    dict."""
    def row(r, **more):
        (model, thinking), (text, finish) = MODEL[r[0]], reply(*r[4:6])
        return dict(model=model, thinking=thinking, length=r[1], variant=r[2],
                    doc_id=r[3], finish_reason=finish, response=text) | more
    config = dict(context_dir='base', section_size=2000, scan_mode='stride',
                  overlap=.1, section_summary=False, report_mode='report_only')
    tables = {'responses_vanilla': [row(r, dataset='project_gutenberg', prompt_version='v6-3', level='', exp=1)
                                    for r in vanilla],
              'responses_judgememo': [row(r, **config | (r[6] if len(r) > 6 else {})) for r in judgememo]}
    columns = {'responses_vanilla': row(('LI', '', '', '', 1, 1), dataset='', prompt_version='', level='', exp=1),
               'responses_judgememo': row(('LI', '', '', '', 1, 1), **config)}
    for name, rows in tables.items():
        path = Path(folder)/'judgememo'/f'{name}.parquet'
        path.parent.mkdir(parents=True, exist_ok=True)
        pd.DataFrame(rows, columns=list(columns[name])).to_parquet(path)
    return Path(folder)
