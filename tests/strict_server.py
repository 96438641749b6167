"A server like OpenAI's for its reasoning models: it refuses `temperature` and `max_tokens`, in OpenAI's words."
from obliging_server import obliging

def refusal(message, param):
    error = dict(message=message, type='invalid_request_error', param=param, code='unsupported_parameter')
    return dict(status=400, body=dict(error=error))

def strict(rule=obliging):
    "A rule for `StubServer`: the given one, for requests that such a model takes."
    def answered(request):
        if 'max_tokens' in request:
            return refusal("Unsupported parameter: 'max_tokens' is not supported with this model. "
                           "Use 'max_completion_tokens' instead.", 'max_tokens')
        if request.get('temperature', 1) != 1:
            return refusal(f"Unsupported value: 'temperature' does not support {request['temperature']:g} with this "
                           'model. Only the default (1) value is supported.', 'temperature')
        return rule(request)
    return answered
