"What the tests of the annotation pages share: rows of each form, and a person whose browser has no script."
import re
from html.parser import HTMLParser

import httpx


def compare_rows(n=3):
    return [dict(id=f'q{i}', group=f'g{i // 5}', level=i % 5, question=f'Question {i}?', reference='So it is.',
                 texts=dict(AI=f'The machine says {i}.', Expert=f'The woman says {i}.'),
                 bases=dict(AI='The machine says x.', Expert='The woman says y.')) for i in range(n)]

def fact_rows(n=3):
    return [dict(id=f'f{i}', group='story', claim=f'Bob left at {i}.',
                 source='Ann came home. Bob left at 1 😀 o\'clock. Cy slept.') for i in range(n)]

def criteria_rows(n=2):
    return [dict(id=f'c{i}', first='Ann left. Bob slept.', second='Bob slept. Ann left.',
                 questions=dict(order='Is the order another one?', smooth='Does it read smoothly?')) for i in range(n)]

def claim_rows(n=2):
    return [dict(id=f't{i}', group='talk', target='Paris is in France. I like it.', history=['A: Where is Paris?'],
                 reference='Paris is the capital of France.', claims=['Paris is in France.', 'I like Paris.'])
            for i in range(n)]

ROWS = dict(compare=compare_rows, facts=fact_rows, criteria=criteria_rows, claims=claim_rows)

class Parts(HTMLParser):
    "What a page has: attributes of its tags, and its text outside scripts."
    def __init__(self, html):
        super().__init__()
        self.tags, self.words = [], []
        self.feed(html)
    def handle_starttag(self, tag, attributes): self.tags.append((tag, dict(attributes)))
    def handle_data(self, data): self.words.append(data)
    def all(self, tag): return [attributes for name, attributes in self.tags if name == tag]
    @property
    def text(self): return ''.join(self.words)

class Person:
    "Somebody with an address, without a script."
    def __init__(self, address):
        self.http = httpx.Client(follow_redirects=True, timeout=60)
        self.base = address.split('?')[0]
        self.see(self.http.get(address))

    def __enter__(self): return self
    def __exit__(self, *error): self.http.close()

    def see(self, response):
        self.response = response
        if 'html' in response.headers.get('content-type', ''):
            self.page = Parts(response.text)
            body = self.page.all('body')[0]
            self.item, self.form_key = body.get('data-item'), self.value('form_key')
        return response

    def value(self, name):
        return next((i.get('value') for i in self.page.all('input') if i.get('name') == name), None)

    def open(self, path='./'): return self.see(self.http.get(httpx.URL(self.base).join(path)))

    def choices(self): return [b['value'] for b in self.page.all('button') if b.get('name') == 'choice']

    def fields(self, choice, **more):
        return dict(form_key=self.form_key, item=self.item, press=self.value('press') or 'x'*12, seconds='',
                    choice=choice) | more

    def send(self, choice, **more):
        "Press a button of the page."
        return self.see(self.http.post(self.base + 'answer', data=self.fields(choice, **more)))

    def undo(self, press=None):
        return self.see(self.http.post(self.base + 'undo', data=dict(
            form_key=self.form_key, press=press or self.value('press'))))

    def progress(self):
        bar = next(a for a in self.page.all('progress') if a.get('role') == 'progressbar')
        return int(bar['aria-valuenow']), int(bar['aria-valuemax'])

def secret(address): return re.search(r'token=(.*)', address)[1]
