"""A server of raw bytes: whatever it is told to send goes out as it is, HTTP or not. For what a server could do wrong
that no library lets it do."""
import asyncio
import json
import threading

def http(body, *headers, status='200 OK'):
    "A whole answer: a body with its head."
    body = body if isinstance(body, bytes) else body.encode()
    lines = [f'HTTP/1.1 {status}', 'Content-Type: application/json', *headers,
             f'Content-Length: {len(body)}', 'Connection: close', '', '']
    return '\r\n'.join(lines).encode() + body

def completion(text='ok', **more):
    "The JSON of a completion."
    message = dict(role='assistant', content=text)
    return json.dumps(dict(id='1', object='chat.completion', created=1,
                           model='m', choices=[dict(index=0, finish_reason='stop', message=message)]) | more)

class RawServer:
    """Use in a `with` block. `answer`: bytes, a list of them (sent one after the other), or a function from the
    request's body to either; None hangs up. `asked` has (head, body) of every request, as bytes."""
    def __init__(self, answer): self.answer, self.asked, self.base_url = answer, [], None

    async def _request(self, reader):
        head = await reader.readuntil(b'\r\n\r\n')
        lengths = [line.split(b':')[1] for line in head.lower().split(b'\r\n') if line.startswith(b'content-length:')]
        body = await reader.readexactly(int(lengths[0]) if lengths else 0)
        self.asked.append((head, body))
        return body

    async def _serve(self, reader, writer):
        try:
            body = await self._request(reader)
            answer = self.answer(body) if callable(self.answer) else self.answer
            for part in [answer] if isinstance(answer, bytes) else answer or ():
                writer.write(part)
                await writer.drain()
            writer.close()
            await writer.wait_closed()
        except (OSError, asyncio.IncompleteReadError): writer.close()

    async def _run(self):
        server = await asyncio.start_server(self._serve, '127.0.0.1', 0)
        self.host = f'127.0.0.1:{server.sockets[0].getsockname()[1]}'
        self.base_url = f'http://{self.host}/v1'
        self._started.set()
        await self._stop.wait()
        server.close()

    def __enter__(self):
        self._started, self._stop, self._loop = threading.Event(), asyncio.Event(), asyncio.new_event_loop()
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._run()), daemon=True)
        self._thread.start()
        assert self._started.wait(10)
        return self

    def __exit__(self, *error):
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)
