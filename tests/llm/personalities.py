"""Servers as they are met: each checks a request as some real endpoint does and refuses in its words, or answers as its
model does. `PERSONALITIES` holds them by name. Where `source` is OURS, no text of a real server was found, and the
words are this file's."""
import json
import re
from dataclasses import dataclass
from itertools import count
from typing import Callable

from obliging_server import by_schema

OURS = 'form of the message is ours'
WORDS = 'word '

@dataclass(frozen=True)
class Personality:
    """One way to be an endpoint. `rule(brain)` is a new rule for a `StubServer`; a brain is a function of a request
    that gives a text."""
    name: str
    about: str                    # What is odd about it, in a sentence
    source: str                   # Where its words were seen, or OURS
    rule: Callable                # Brain -> rule
    can_chat: bool = True         # Can judges be had from it at all?
    thinks: bool = False          # Does it reason before it answers?
    sentence: str = ''            # If it can't chat: what the one sentence has to say, as a regular expression
    path: str = '/v1'             # The base URL's path
    elsewhere: Callable|None = None # What the server says at other paths, as `StubServer` takes it
    # Fields of a request that bring the oddity out where judges don't send them: (name, value)
    fields: tuple = ()
    things: int = 1               # How many things there are to learn about it, at most: each is refused (or cut) once
    kept: tuple = ()              # Fields that are to be sent as asked for, however odd the server

    def address(self, server): return server.base_url.removesuffix('/v1') + self.path

PERSONALITIES = {}

def personality(about, source, **facts):
    "Put a function from a brain to a rule among the personalities, by its name."
    def put(rule):
        name = rule.__name__
        PERSONALITIES[name] = Personality(name, about, source, rule, **facts)
        return rule
    return put

def server_facts(chosen, brain):
    "What `StubServer` takes to be this personality: its rule, and what it says elsewhere."
    return dict(rule=chosen.rule(brain), elsewhere=chosen.elsewhere)

# --- a brain that answers in form, wherever the form is said

def schema_in(text):
    "The last JSON schema that stands in a text; None if there is none."
    found, at = None, text.find('{')
    while at >= 0:
        try: value, end = json.JSONDecoder().raw_decode(text, at)
        except ValueError: end = at + 1
        else:
            if 'properties' in value or {'type', 'items'} <= value.keys(): found = value
        at = text.find('{', end)
    return found

def wanted_schema(request):
    "The schema that a request asks for, in its own field or in its words."
    form = request.get('response_format') or {}
    if form.get('type') == 'json_schema': return form['json_schema']['schema']
    return schema_in(prompt_of(request))

def brain(request):
    "Says the same to the same question, whichever way the form is asked for."
    schema = wanted_schema(request)
    if schema is None: return 'Anna met Ben.\nFINAL Fluency Score: 4\nFINAL Coherence Score: 3\nConsistency: 4'
    return json.dumps(by_schema(first_choices(schema), prompt_of(request)))

def first_choices(schema):
    """A schema of which every choice has only its first value left: `by_schema` chooses by the prompt's length, which
    the form changes."""
    if isinstance(schema, list): return [first_choices(part) for part in schema]
    if not isinstance(schema, dict): return schema
    return {name: part[:1] if name == 'enum' else first_choices(part) for name, part in schema.items()}

# --- what rules are made of

def prompt_of(request): return '\n'.join(str(message['content']) for message in request['messages'])
def words_of(request): return len(prompt_of(request).split())
def form_of(request): return (request.get('response_format') or {}).get('type', 'text')
def roles_of(request): return [message['role'] for message in request['messages']]
def limit_of(request): return request.get('max_completion_tokens') or request.get('max_tokens')
def dig(schema): # every schema in a schema
    if isinstance(schema, dict): yield schema
    for part in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from dig(part)

def refuse(status, body): return dict(status=status, body=body)

def openai_error(message, param=None, code=None, status=400, kind='invalid_request_error'):
    return refuse(status, dict(error=dict(message=message, type=kind, param=param, code=code)))

def anthropic_error(message, kind='invalid_request_error', status=400):
    return refuse(status, dict(type='error', error=dict(type=kind, message=message),
                               request_id='req_011CTfrnTsra8hsUuM24BzEC'))

def vllm_error(message):
    return refuse(400, dict(object='error', message=message, type='BadRequestError', param=None, code=400))
# a list, at the compatible address
def google_error(message): return refuse(400, [dict(error=dict(code=400, message=message, status='INVALID_ARGUMENT'))])

def dashscope_error(message):
    return refuse(400, dict(error=dict(code='invalid_parameter_error', param=None,
                                       message=message, type='invalid_request_error'), id='chatcmpl-1', request_id='1'))

def checked(check):
    "A function from a request to a refusal or None, as a function from a brain to a rule."
    def rule(brain): return lambda request: check(request) or brain(request)
    rule.__name__ = check.__name__
    return rule

def refusing(about, source, **facts):
    "Put a check among the personalities."
    return lambda check: personality(about, source, **facts)(checked(check))

def thinking(request, answer, tokens, put):
    "An answer after so many tokens of thought, which count in the limit; cut off where it is too small."
    limit, thought = limit_of(request), WORDS*tokens
    if limit is not None and limit <= tokens:
        return put(WORDS*limit, None) | dict(finish_reason='length', usage=used(request, limit, limit))
    return put(thought, answer) | dict(usage=used(request, tokens + len(answer.split()), tokens))

def used(request, completion, reasoning):
    n = words_of(request)
    return dict(prompt_tokens=n, completion_tokens=completion, total_tokens=n + completion,
                completion_tokens_details=dict(reasoning_tokens=reasoning))

# --- able

@personality('Can do all that is asked for.', 'https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html')
def able(brain): return brain

# --- temperature, the name of the limit, reasoning that eats it

def reasoning_model(request, temperature):
    "What OpenAI's reasoning models refuse."
    if 'max_tokens' in request:
        return openai_error(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", 'max_tokens', 'unsupported_parameter')
    if request.get('temperature', 1) != 1: return temperature(request['temperature'])
    if request.get('logprobs'):
        return openai_error("Unsupported parameter: 'logprobs' is not supported with this model.",
                            'logprobs', 'unsupported_parameter')

def unsupported_value(t):
    return openai_error(
        f"Unsupported value: 'temperature' does not support {t} with this model. Only the default (1) value is "
        f"supported.", 'temperature', 'unsupported_value')

def unsupported_parameter(t):
    return openai_error("Unsupported parameter: 'temperature' is not supported with this model.",
                        'temperature', 'unsupported_parameter')
def hidden(thought, answer): return dict(content=answer or '')

@personality(
    'Takes its own temperature and max_completion_tokens only; thinks 3,000 hidden tokens, which count in the limit.',
             'https://github.com/gabrii/Cursor-Azure-GPT-5/issues/33', thinks=True, things=3)
def gpt5(brain):
    return lambda request: reasoning_model(request,
                                           unsupported_value) or thinking(request, brain(request), 3000, hidden)

@personality('Knows no temperature at all, and max_completion_tokens only.',
             'https://github.com/BeehiveInnovations/pal-mcp-server/issues/78', thinks=True, things=2)
def o3_mini(brain):
    return lambda request: reasoning_model(request,
                                           unsupported_parameter) or thinking(request, brain(request), 600, hidden)

@personality('No system role, its own temperature, max_completion_tokens.',
             'https://github.com/microsoft/agent-framework/issues/1077', thinks=True, things=3)
def o1_mini(brain):
    def rule(request):
        for i, role in enumerate(roles_of(request)):
            if role in ('system', 'developer'):
                return openai_error(
                    f"Unsupported value: 'messages[{i}].role' does not support '{role}' with this model.",
                    f'messages[{i}].role', 'unsupported_value')
        return reasoning_model(request, unsupported_value) or thinking(request, brain(request), 600, hidden)
    return rule

@personality('With too small a limit for its thought, it refuses instead of being cut.',
             'https://github.com/decolua/9router/issues/972', thinks=True)
def azure_router(brain):
    def rule(request):
        limit = limit_of(request)
        if limit is None or limit > 3000: return brain(request)
        return openai_error(
            'Could not finish the message because max_tokens or model output limit was reached. Please try again with '
            'higher max_tokens.')
    return rule

@refusing('Any temperature is refused.', 'https://github.com/cognizant-ai-lab/neuro-san-studio/issues/1072')
def claude_without_temperature(request):
    if 'temperature' in request: return anthropic_error('`temperature` is deprecated for this model.')

@refusing('Temperature or top_p, but not both.', 'https://github.com/BerriAI/litellm/issues/15097',
          fields=(('top_p', .9),))
def claude_temperature_or_top_p(request):
    if {'temperature', 'top_p'} <= request.keys():
        return anthropic_error(
            '`temperature` and `top_p` cannot both be specified for this model. Please use only one.')

@refusing('A temperature of exactly 0 is refused: it must be above.',
          "a literal of text-generation-inference's router, seen in public code")
def temperature_above_zero(request):
    if request.get('temperature') == 0:
        return refuse(422, dict(error='Input validation error: `temperature` must be strictly positive',
                                error_type='validation'))

@refusing('Only knows max_tokens.', 'https://github.com/editor-code-assistant/eca/issues/231')
def max_tokens_only(request):
    if 'max_completion_tokens' in request: return extra_forbidden('max_completion_tokens', request)

# --- roles

@refusing('The chat template knows no system role.', 'https://github.com/vllm-project/vllm/pull/2964')
def gemma_on_vllm(request):
    if 'system' in roles_of(request): return vllm_error('System role not supported')

@refusing('No system role; the error is in a list.', 'https://github.com/microsoft/vscode/issues/258088')
def gemma_at_google(request):
    if 'system' in roles_of(request):
        return google_error('Developer instruction is not enabled for models/gemma-3-27b-it')

@refusing('Roles must take turns, the user first.', 'https://github.com/weaviate/Verba/issues/150')
def mistral_template(request):
    if any(role != ('user', 'assistant')[i % 2] for i, role in enumerate(roles_of(request))):
        return vllm_error('Conversation roles must alternate user/assistant/user/assistant/...')

@refusing('After a system message, roles must take turns.', 'https://github.com/vllm-project/vllm/issues/6862')
def mistral_template_with_system(request):
    roles = roles_of(request)[roles_of(request)[0] == 'system':]
    if any(role != ('user', 'assistant')[i % 2] for i, role in enumerate(roles)):
        return vllm_error(
            'After the optional system message, conversation roles must alternate user/assistant/user/assistant/...')

@refusing('A developer says what a system said.', OURS)
def developer_role_only(request):
    if 'system' in roles_of(request):
        return openai_error(
            "Unsupported value: 'messages[0].role' does not support 'system' with this model. Use 'developer' instead.",
            'messages[0].role', 'unsupported_value')

# --- the most tokens of a reply

def too_large(request, most): return (limit_of(request) or 0) > most

@refusing('At most 1,024 tokens in a reply.', 'https://github.com/ChatGPTNextWeb/NextChat/issues/3195')
def output_of_openai(request):
    n = limit_of(request)
    if too_large(request, 1024):
        return openai_error(
            f'max_tokens is too large: {n}. This model supports at most 1024 completion tokens, whereas you provided '
            f'{n}.', 'max_tokens')

@refusing('At most 1,024 tokens in a reply.', 'https://github.com/deepseek-ai/DeepSeek-V3/issues/69')
def output_of_deepseek(request):
    if too_large(request, 1024):
        return openai_error('Invalid max_tokens value, the valid range of max_tokens is [1, 1024]',
                            code='invalid_request_error')

@refusing('At most 1,024 tokens in a reply.', 'https://github.com/open-webui/open-webui/issues/10507')
def output_of_dashscope(request):
    if too_large(request, 1024):
        return dashscope_error('<400> InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, 1024]')

@refusing('At most 1,024 tokens in a reply.', 'found as a literal in public code; not documented')
def output_of_anthropic(request):
    if too_large(request, 1024):
        return anthropic_error(
            f'max_tokens: {limit_of(request)} > 1024, which is the maximum allowed number of output tokens for '
            f'claude-3-haiku-20240307')

@refusing('At most 1,024 tokens in a reply.', 'https://github.com/yiliqi78/TOKENICODE/issues/3')
def output_of_volcengine(request):
    if too_large(request, 1024):
        words = (f'integer above maximum value, expected a value <= 1024, but got {limit_of(request)} instead. Request '
                 f'id: 02')
        return refuse(400, dict(error=dict(code='InvalidParameter',
                                           message=f'The parameter max_tokens specified in the request is not valid: '
                                                   f'{words}', param='max_tokens', type='BadRequest')))

@refusing('At most 1,024 tokens in a reply.', 'https://github.com/charmbracelet/crush/issues/946')
def output_of_bedrock(request):
    if too_large(request, 1024):
        return refuse(400, dict(message='The maximum tokens you requested exceeds the model limit of 1024'))

@refusing('At most 4,096 tokens in a reply.', 'https://github.com/algorithmicsuperintelligence/optillm/issues/4',
          fields=(('max_tokens', 8192),))
def output_4096(request):
    n = limit_of(request)
    if too_large(request, 4096):
        return openai_error(
            f'max_tokens is too large: {n}. This model supports at most 4096 completion tokens, whereas you provided '
            f'{n}.', 'max_tokens')

# --- prompt and reply in one context

CONTEXT = 4096

def overfull(request): return words_of(request) + (limit_of(request) or 0) > CONTEXT

def requested(request):
    n, limit = words_of(request), limit_of(request)
    return (f"This model's maximum context length is {CONTEXT} tokens. However, you requested {n + limit} tokens ({n} "
            f"in the messages, {limit} in the completion). "
            'Please reduce the length of the messages or completion.')

@refusing('Prompt and reply have 4,096 tokens.', 'https://github.com/ChatGPTNextWeb/NextChat/issues/3195')
def context_of_openai(request):
    if overfull(request): return openai_error(requested(request), 'messages', 'context_length_exceeded')

@refusing('Prompt and reply have 4,096 tokens.', 'https://github.com/meta-llama/llama-verifications/issues/58')
def context_of_older_vllm(request):
    if overfull(request): return vllm_error(requested(request))

@refusing('Prompt and reply have 4,096 tokens.', 'https://github.com/claude-code-best/claude-code/issues/272')
def context_of_vllm(request):
    n, limit = words_of(request), limit_of(request)
    if overfull(request):
        return refuse(400, dict(error=dict(message=(
            f"'max_tokens' or 'max_completion_tokens' is too large: {limit}. This model's maximum context length is "
            f"{CONTEXT} tokens and your request has {n} "
            f'input tokens ({limit} > {CONTEXT} - {n}). None'), type='BadRequestError', param=None, code=400)))

@refusing('Prompt and reply have 4,096 tokens.', 'https://github.com/vllm-project/vllm/issues/42474')
def context_of_newer_vllm(request):
    n, limit = words_of(request), limit_of(request)
    if overfull(request): # what it calls the prompt's tokens is only what the limit leaves, and one
        return refuse(400, dict(error=dict(message=(
            f"This model's maximum context length is {CONTEXT} tokens. However, you requested {limit} output tokens "
            f"and your prompt contains at least "
            f'{max(CONTEXT - limit + 1, 1)} input tokens, for a total of at least {max(CONTEXT, limit) + 1} tokens. '
            f'Please reduce the length of the input prompt or the '
            'number of requested output tokens.'), type='BadRequestError', param='input_tokens', code=400)))

@refusing('Prompt and reply have 4,096 tokens, and it does not say how many.',
          'https://github.com/thepersonalaicompany/amurex-backend/issues/51')
def context_of_groq(request):
    if overfull(request):
        return openai_error('Please reduce the length of the messages or completion.',
                            'messages', 'context_length_exceeded')

@refusing('Prompt and reply have 4,096 tokens.', 'https://github.com/huggingface/text-generation-inference/issues/628')
def context_of_tgi(request):
    if overfull(request):
        return refuse(
            422, dict(error=(
                f'Input validation error: `inputs` tokens + `max_new_tokens` must be <= {CONTEXT}. Given: '
                f'{words_of(request)} `inputs` tokens and '
                             f'{limit_of(request)} `max_new_tokens`'), error_type='validation'))

@refusing('Prompt and reply have 4,096 tokens.', 'https://github.com/autohandai/code-cli/issues/435')
def context_of_openrouter(request):
    n, limit = words_of(request), limit_of(request)
    if overfull(request):
        return refuse(400, dict(error=dict(message=(
            f"This endpoint's maximum context length is {CONTEXT} tokens. However, you requested about {n + limit} "
            f"tokens ({n} of text input, {limit} in the output). "
            'Please reduce the length of either one, or use the context-compression plugin to compress your prompt '
            'automatically.'), code=400)))

@refusing('The prompt alone is too long: no smaller reply helps.', 'https://github.com/oobabooga/textgen/issues/7257',
          can_chat=False, sentence='context')
def context_of_llama_cpp(request):
    return refuse(400, dict(error=dict(code=400,
                                       message='the request exceeds the available context size. try increasing the '
                                               'context size or enable context shift',
                                       type='exceed_context_size_error', n_prompt_tokens=words_of(request), n_ctx=64)))

@refusing('The prompt alone is too long: no smaller reply helps.', 'https://github.com/QwenLM/Qwen3/issues/1321',
          can_chat=False, sentence='context')
def context_of_sglang(request):
    return vllm_error(f"The input ({words_of(request)} tokens) is longer than the model's context length (64 tokens).")

# --- schemas

@refusing('Every object must forbid further properties and require all it has.',
          'https://github.com/dottxt-ai/outlines/issues/844')
def openai_strict(request):
    if form_of(request) != 'json_schema' or not request['response_format']['json_schema'].get('strict'): return None
    for schema in dig(request['response_format']['json_schema']['schema']):
        if schema.get('type') != 'object': continue
        if schema.get('additionalProperties') is not False:
            return openai_schema("'additionalProperties' is required to be supplied and to be false.")
        if missing := sorted(schema.get('properties', {}).keys() - set(schema.get('required', ()))):
            return openai_schema(
                f"'required' is required to be supplied and to be an array including every key in properties. Missing "
                f"'{missing[0]}'.")

def openai_schema(what):
    return openai_error(f"Invalid schema for response_format 'answer': In context=(), {what}", 'response_format')

@refusing('Knows no bounds on lists.', 'https://github.com/i-am-bee/beeai-framework/issues/1215')
def groq_keywords(request):
    if form_of(request) == 'json_schema' and any({'minItems', 'maxItems'} & schema.keys()
                                                 for schema in dig(request['response_format'])):
        return refuse(
            400, dict(error=dict(
                message='invalid schema for response format: response_format/json_schema: minItems is not supported',
                type='invalid_request_error')))

@refusing('A model that writes no JSON under a form: the server refuses its own reply.',
          'https://github.com/build-with-groq/g1/pull/23')
def groq_json(request):
    if form_of(request) != 'text':
        return refuse(
            400, dict(error=dict(
                message="Failed to generate JSON. Please adjust your prompt. See 'failed_generation' for more details.",
                                 type='invalid_request_error', code='json_validate_failed',
                failed_generation='Anna met Ben.')))

@refusing('Knows json_object only, and wants the word in the prompt.',
          'https://github.com/browserbase/stagehand/issues/1204', things=2)
def deepseek(request):
    if form_of(request) == 'json_schema':
        return openai_error('This response_format type is unavailable now', code='invalid_request_error')
    if form_of(request) == 'json_object' and 'json' not in prompt_of(request).lower():
        return openai_error(
            "Prompt must contain the word 'json' in some form to use 'response_format' of type 'json_object'.",
            code='invalid_request_error')

@refusing('An older model: json_object only, and the word in the prompt.',
          'https://github.com/web-infra-dev/midscene/issues/259', things=2)
def older_openai(request):
    if form_of(request) == 'json_schema':
        return openai_error(
            "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model. Learn more "
            "about supported models at the "
                            'Structured Outputs guide: https://platform.openai.com/docs/guides/structured-outputs',
            'response_format')
    if form_of(request) == 'json_object' and 'json' not in prompt_of(request).lower():
        return openai_error(
            "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.",
            'messages')

@refusing('No endpoint behind the router can do all that is asked for.',
          'found as a literal in public code; https://openrouter.ai/docs/structured-outputs says only that it fails')
def openrouter(request):
    if form_of(request) != 'text':
        return refuse(
            404, dict(error=dict(
                message=('No endpoints found that can handle the requested parameters. To learn more about provider '
                         'routing, visit: '
                         'https://openrouter.ai/docs/provider-routing'), code=404)))

@refusing('No form at all.', 'https://github.com/BerriAI/litellm/issues/6610')
def no_form_at_xai(request):
    if 'response_format' in request:
        return refuse(400, dict(code='Client specified an invalid argument',
                                error='The response_format parameter is unsupported at the moment. Leave it unset.'))

@refusing('No form at all: the field itself is refused by a validation, as a list.',
          'shape: https://fastapi.tiangolo.com/tutorial/handling-errors/; ' + OURS)
def no_form_in_a_list(request):
    if 'response_format' in request:
        return refuse(422, dict(detail=[dict(type='extra_forbidden', loc=['body', 'response_format'],
                                             msg='Extra inputs are not permitted', input=request['response_format'])]))

@personality('A form is accepted and ignored; JSON comes in a fence, if the words ask for it.',
             'https://docs.anthropic.com/en/api/openai-sdk')
def form_ignored(brain):
    def rule(request):
        request = {name: value for name, value in request.items() if name != 'response_format'}
        text = brain(request)
        return f'Here it is:\n\n```json\n{text}\n```' if text.startswith(('{', '[')) else text
    return rule

# --- other fields

def extra_forbidden(name, request):
    detail = dict(type='extra_forbidden', loc=['body', name], msg='Extra inputs are not permitted', input=request[name])
    return refuse(422, dict(object='error', message=dict(detail=[detail]),
                            type='invalid_request_error', param=None, code=None))

@refusing('A seed has another name here.', 'https://github.com/langchain-ai/langchain-azure/issues/82',
          fields=(('seed', 7),), kept=('temperature',))
def mistral_fields(request):
    for name in ('seed', 'logprobs'):
        if name in request: return extra_forbidden(name, request)

@refusing('An unknown field is refused as a text of a list.', 'https://github.com/vllm-project/vllm/issues/3657',
          fields=(('seed', 7),), kept=('temperature',))
def vllm_fields(request):
    if 'seed' in request:
        return vllm_error(
            "[{'type': 'extra_forbidden', 'loc': ('body', 'seed'), 'msg': 'Extra inputs are not permitted', 'input': "
            "7}]")

@refusing('No seed.', 'https://github.com/sinaptik-ai/pandas-ai/issues/749',
          fields=(('seed', 7),), kept=('temperature',))
def azure_fields(request):
    if 'seed' in request: return openai_error('Unrecognized request argument supplied: seed')

@refusing('No seed; the error is in a list.', 'https://github.com/Vali-98/ChatterUI/issues/227',
          fields=(('seed', 7),), kept=('temperature',))
def gemini_fields(request):
    if 'seed' in request: return google_error('Invalid JSON payload received. Unknown name "seed": Cannot find field.')

@refusing('No log-probabilities.', 'https://github.com/groq/groq-python/issues/25',
          fields=(('logprobs', True),), kept=('temperature',))
def groq_logprobs(request):
    if request.get('logprobs'): return openai_error('`logprobs` is not supported with this model', 'logprobs')

@refusing('No log-probabilities.', 'https://github.com/openai/openai-python/issues/1080',
          fields=(('logprobs', True),), kept=('temperature',))
def openai_logprobs(request):
    if request.get('logprobs'): return openai_error("This model does not support the 'logprobs' parameter.", 'logprobs')

# --- streaming

@refusing('Answers in a stream only.', 'https://github.com/infiniflow/ragflow/issues/5912')
def stream_only(request):
    if not request.get('stream'):
        return dashscope_error(
            'This model only support stream mode, please enable the stream parameter to access the model. ')

@personality('Thinks in a stream only; without one it must be told not to think.',
             'https://github.com/infiniflow/ragflow/issues/8972', thinks=True)
def thinking_stream(brain):
    def rule(request):
        if request.get('enable_thinking', True) and not request.get('stream'):
            return dashscope_error('parameter.enable_thinking must be set to false for non-streaming calls')
        return dict(content=brain(request)) | (dict(reasoning_content='First, who met whom?')
                                               if request.get('enable_thinking', True) else {})
    return rule

# --- reasoning in the reply

def put_in_tags(thought, answer):
    return dict(content=f'<think>\n{thought}' + ('' if answer is None else f'\n</think>\n\n{answer}'))

@personality('Thinks aloud in tags.', 'https://docs.vllm.ai/en/v0.7.3/features/reasoning_outputs.html', thinks=True)
def think_tags(brain): return lambda request: thinking(request, brain(request), 40, put_in_tags)

@personality('Thinks aloud; the opening tag is in the prompt template, so only the closing one comes.',
             'https://docs.vllm.ai/en/v0.26.0/features/reasoning_outputs/', thinks=True)
def closing_tag_only(brain): return lambda request: f'First, who met whom? {{"a": 1}}\n</think>\n\n{brain(request)}'

@personality('Reasoning has a field of its own.', 'https://api-docs.deepseek.com/guides/reasoning_model', thinks=True)
def reasoning_content(brain):
    return lambda request: dict(content=brain(request), reasoning_content='First, who met whom?')

@personality('Reasoning has a field of its own, of another name.',
             'https://docs.vllm.ai/en/v0.11.2/features/reasoning_outputs/', thinks=True)
def reasoning(brain): return lambda request: dict(content=brain(request), reasoning='First, who met whom?')

@personality('3,000 tokens of thought in a field of its own, which count in the limit.',
             'https://api-docs.deepseek.com/zh-cn/guides/reasoning_model', thinks=True)
def long_thought(brain):
    return lambda request: thinking(request, brain(request), 3000,
                                    lambda thought, answer: dict(content=answer, reasoning_content=thought))

@personality('Reasons, and never answers.', OURS, can_chat=False, thinks=True, sentence='reason|thought|think')
def only_reasoning(brain): return lambda request: dict(content=None, reasoning_content='First, who met whom? So it is.')

@personality('20,000 tokens of thought, where the server gives at most 16,384.',
             'https://github.com/covan-ai/covan/pull/112 (the cut); ' + OURS,
             can_chat=False, thinks=True, sentence='cut|limit|truncat')
def endless_thought(brain):
    def rule(request):
        if too_large(request, 16384):
            return openai_error('Invalid max_tokens value, the valid range of max_tokens is [1, 16384]',
                                code='invalid_request_error')
        return thinking(request | dict(max_tokens=limit_of(request) or 16384), brain(request), 20000, put_in_tags)
    return rule

# --- odd replies

TOOL_CALL = dict(content=None, finish_reason='tool_calls',
                 tool_calls=[dict(id='call_1', type='function',
                                  function=dict(name='search', arguments='{"query": "Anna"}'))])

@personality('Once it calls a tool that nobody gave it.', OURS)
def one_tool_call(brain):
    calls = count()
    return lambda request: TOOL_CALL if next(calls) == 0 else brain(request)

@personality('Always calls a tool that nobody gave it.', OURS, can_chat=False, sentence='tool')
def only_tool_calls(brain): return lambda request: TOOL_CALL

@personality('Counts no tokens.', OURS)
def no_usage(brain): return lambda request: dict(content=brain(request), usage=None)

@personality('Fails once, at one odd request.', OURS)
def one_failure(brain):
    calls = count()
    return lambda request: refuse(
        500, dict(error=dict(message='The server had an error while processing your request. Sorry about that!',
                             type='server_error', param=None, code=None))) \
        if next(calls) == 0 else brain(request)

@personality('Once it refuses the temperature, and then takes the very same request: nothing is to be learnt from it.',
             OURS, kept=('temperature',))
def one_odd_refusal(brain):
    calls = count()
    return lambda request: openai_error("Invalid value for 'temperature'.",
                                        'temperature') if next(calls) == 0 else brain(request)

# --- nobody is there

def answering_nobody(request): raise AssertionError('No request is to come here.')

@personality('The base URL lacks its end.', 'https://github.com/langchain-ai/langchain/issues/17596',
             can_chat=False, sentence='404.*(/v1|base)', path='',
             elsewhere=lambda path: dict(status=404, body='404 page not found'))
def wrong_path(brain): return answering_nobody

@personality("Anthropic's native address.", 'https://github.com/sashabaranov/go-openai/pull/934 (404); words: ' + OURS,
             can_chat=False, sentence='404|/v1/messages', path='/v1/messages',
             elsewhere=lambda path: anthropic_error('Not found', 'not_found_error', 404))
def anthropic_native(brain): return answering_nobody

@personality("Anthropic's native address, where the version's header is asked for.",
             'https://github.com/Pasta-Devs/Marinara-Engine/issues/120', can_chat=False, sentence='anthropic-version',
             path='/v1/messages', elsewhere=lambda path: anthropic_error('anthropic-version: header is required'))
def anthropic_without_version(brain): return answering_nobody

@personality("Azure's older address, without its version.", 'https://github.com/vibrantlabsai/ragas/issues/478',
             can_chat=False, sentence='Resource not found',
             path='/openai/deployments/gpt-4o',
             elsewhere=lambda path: refuse(404, dict(error=dict(code='404', message='Resource not found'))))
def azure_without_version(brain): return answering_nobody

@refusing('A deployment that Azure has not.', 'https://github.com/chatboxai/chatbox/issues/739',
          can_chat=False, sentence='deployment')
def azure_deployment(request):
    return refuse(404, dict(error=dict(code='DeploymentNotFound',
                                       message=('The API deployment for this resource does not exist. If you created '
                                                'the deployment within the last '
                                               '5 minutes, please wait a moment and try again.'))))

@refusing('A model that is not there.', 'https://github.com/timkmecl/chatgpt-vscode/issues/45',
          can_chat=False, sentence='does not exist')
def unknown_model(request):
    return openai_error(f"The model `{request['model']}` does not exist or you do not have access to it.",
                        code='model_not_found', status=404)

@refusing('A wrong key.', 'https://github.com/chatanywhere/GPT_API_free/issues/62', can_chat=False, sentence='(?i)key')
def wrong_key(request):
    return openai_error(
        'Incorrect API key provided: none. You can find your API key at https://platform.openai.com/account/api-keys.',
        code='invalid_api_key', status=401)
