"""A model that answers every request in form: JSON by the schema that it is asked with, a decision for every id in the
prompt, or two scores. What it says means nothing."""
import json
import re

IDS = re.compile(r'^\[(\w+)\]', re.MULTILINE)

def by_schema(schema, prompt):
    "Something that fits the schema; a list of things with ids has one for each id in the prompt."
    if 'enum' in schema: return schema['enum'][len(prompt) % len(schema['enum'])]
    kinds = schema.get('type', 'string')
    kind = kinds if isinstance(kinds, str) else kinds[0]
    if kind == 'object': return {name: by_schema(part, prompt) for name, part in schema.get('properties', {}).items()}
    if kind == 'array':
        items, ids = schema.get('items', {}), list(dict.fromkeys(IDS.findall(prompt)))
        if 'id' in items.get('properties', {}): return [by_schema(items, prompt) | dict(id=i) for i in ids]
        return ids if ids and items.get('type') == 'string' else [by_schema(items, prompt)]
    return dict(string='Anna met Ben.', integer=3, number=3, boolean=True, null=None)[kind]

def obliging(request):
    "A rule for `StubServer`."
    prompt = '\n'.join(message['content'] for message in request['messages'])
    asked = request.get('response_format') or {}
    if asked.get('type') == 'json_schema': return json.dumps(by_schema(asked['json_schema']['schema'], prompt))
    return 'Anna met Ben.\nFINAL Fluency Score: 4\nFINAL Coherence Score: 3\nConsistency: 4'
