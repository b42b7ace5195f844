#!/usr/bin/env python3
"""A model on the loopback: speaks the Messages, the Responses and the Chat Completions protocol.

It does as it is told. What comes next is one word in the file MODE: `ok` answers, `hang` begins an
answer and never ends it, `tool` asks once for the shell command in the file TOOL and answers when it
has its result, `limit` says that the usage limit is reached and lifted at the second in the file
RESET, `login` that the key is wrong. `play` does what the first fitting rule of the JSON list in PLAY says: its `when` is a pattern
that the user's words fit, its `calls` are tools and their input, one after the other, with `{cwd}`
for the directory of the program and `{1}` for what the first group of the pattern found; one with
`hang` hangs while there is a file HANG. Every request adds a line to the file LOG.

    stub_model.py DIRECTORY        # prints its port
"""

import http.server
import json
import pathlib
import re
import sys
import time

DIR = pathlib.Path(sys.argv[1])
USAGE = {"input_tokens": 100, "output_tokens": 7}


def played(body):
    """The rule that fits, and the tool that is called next; `None` = it is through."""
    turns = body.get("messages") or body.get("input", [])
    said = [turn.get("content", "") for turn in turns if turn.get("role") == "user"]
    parts = [part for content in said if isinstance(content, list) for part in content]
    texts = [content for content in said if isinstance(content, str)]
    texts += [part["text"] for part in parts if isinstance(part.get("text"), str)]
    done = sum(part.get("type") == "tool_result" for part in parts)
    rules = json.loads(word("PLAY", "[]"))
    fits = ((it, re.search(it["when"], text)) for it in rules for text in texts)
    rule, fit = next(((it, fit) for it, fit in fits if fit), ({}, None))
    calls = rule.get("calls", [])
    if done >= len(calls):
        return rule, None
    tool, given = calls[done]
    found = re.search(r"[Ww]orking directory: ([^\\\s\"]+)", json.dumps(body))
    text = json.dumps(given).replace("{cwd}", found.group(1) if found else ".")
    for number, group in enumerate(fit.groups(), 1):
        text = text.replace(f"{{{number}}}", group)
    return rule, (tool, json.loads(text))


def word(name, default=""):
    path = DIR / name
    return path.read_text().strip() if path.exists() else default


class Model(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):
        self.whole(200, {"object": "list", "data": [], "models": []})

    def do_HEAD(self):
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_POST(self):
        length = int(self.headers.get("content-length") or 0)
        try:
            body = json.loads(self.rfile.read(length) or b"{}")
        except ValueError:
            body = {}
        path = self.path.split("?")[0]
        if path.endswith("/count_tokens"):
            return self.whole(200, {"input_tokens": 10})
        if path.endswith("/messages"):
            talk = self.talk_messages
        elif path.endswith("/responses"):
            talk = self.talk_responses
        elif path.endswith("/chat/completions"):
            talk = self.talk_chat
        else:
            return self.whole(404, {"error": {"message": "no such path"}})
        mode = word("MODE", "ok")
        with open(DIR / "LOG", "a", encoding="utf-8") as log:
            log.write(f"{path} {mode}\n")
        if mode == "login":
            error = {"type": "authentication_error", "message": "invalid x-api-key"}
            return self.whole(401, {"type": "error", "error": error})
        try:
            talk(body, mode)
        except (BrokenPipeError, ConnectionResetError):
            pass

    # What goes out.

    def whole(self, code, value, headers=()):
        data = json.dumps(value).encode()
        self.send_response(code)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        for name, content in headers:
            self.send_header(name, content)
        self.end_headers()
        self.wfile.write(data)

    def stream(self):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True

    def event(self, kind, **fields):
        data = json.dumps({"type": kind, **fields})
        self.wfile.write(f"event: {kind}\ndata: {data}\n\n".encode())
        self.wfile.flush()

    def hang(self, holds=lambda: word("MODE") == "hang"):
        (DIR / "HANGING").touch()
        while holds():
            time.sleep(0.05)

    # The protocols.

    def talk_messages(self, body, mode):
        if mode == "limit":
            reset = word("RESET")
            headers = [
                ("anthropic-ratelimit-unified-status", "rejected"),
                ("anthropic-ratelimit-unified-reset", reset),
                ("anthropic-ratelimit-unified-representative-claim", "five_hour"),
                ("anthropic-ratelimit-unified-5h-status", "rejected"),
                ("anthropic-ratelimit-unified-5h-reset", reset),
                ("anthropic-ratelimit-unified-5h-utilization", "1.0"),
                ("retry-after", "3600"),
            ]
            error = {"type": "rate_limit_error", "message": "limit"}
            return self.whole(429, {"type": "error", "error": error}, headers)
        turns = body.get("messages", [])
        parts = [part for turn in turns for part in turn.get("content", []) if isinstance(part, dict)]
        has_result = any(part.get("type") == "tool_result" for part in parts)
        has_shell = any(tool.get("name") == "Bash" for tool in body.get("tools", []))
        message = {"id": f"msg_{time.time_ns()}", "type": "message", "role": "assistant"}
        message.update(model=body.get("model"), content=[], stop_reason=None, usage=USAGE)
        rule, next_call = played(body) if mode == "play" else ({}, None)
        if next_call and next_call[0] in [it.get("name") for it in body.get("tools", [])]:
            call = {"type": "tool_use", "id": f"toolu_{time.time_ns()}", "name": next_call[0]}
            text, stop = json.dumps(next_call[1]), "tool_use"
            block, delta = {**call, "input": {}}, {"type": "input_json_delta", "partial_json": text}
        elif mode == "tool" and has_shell and not has_result:
            call = {"type": "tool_use", "id": f"toolu_{time.time_ns()}", "name": "Bash"}
            text, stop = json.dumps({"command": word("TOOL"), "description": "x"}), "tool_use"
            block, delta = {**call, "input": {}}, {"type": "input_json_delta", "partial_json": text}
        else:
            block, stop = {"type": "text", "text": ""}, "end_turn"
            delta = {"type": "text_delta", "text": "the answer"}
        if not body.get("stream"):
            content = [{"type": "text", "text": "the answer"}]
            return self.whole(200, {**message, "content": content, "stop_reason": "end_turn"})
        self.stream()
        self.event("message_start", message=message)
        if mode == "hang":
            return self.hang()
        if rule.get("hang") and (DIR / "HANG").exists():
            return self.hang(lambda: (DIR / "HANG").exists())
        self.event("content_block_start", index=0, content_block=block)
        self.event("content_block_delta", index=0, delta=delta)
        self.event("content_block_stop", index=0)
        ended = {"stop_reason": stop, "stop_sequence": None}
        self.event("message_delta", delta=ended, usage=USAGE)
        self.event("message_stop")

    def talk_responses(self, body, mode):
        if mode == "limit":
            error = {"type": "usage_limit_reached", "message": "limit", "plan_type": "plus"}
            error["resets_at"] = int(word("RESET"))
            return self.whole(429, {"error": error})
        given = body.get("input", [])
        has_result = any(str(item.get("type", "")).endswith("_output") for item in given)
        name = f"resp_{time.time_ns()}"
        self.stream()
        self.event("response.created", response={"id": name})
        if mode == "hang":
            return self.hang()
        if mode == "tool" and not has_result:
            names = [tool.get("name") for tool in body.get("tools", [])]
            if "exec_command" in names:
                tool, arguments = "exec_command", {"cmd": word("TOOL")}
            else:
                tool, arguments = "shell_command", {"command": word("TOOL")}
            item = {"type": "function_call", "call_id": f"call_{time.time_ns()}", "name": tool}
            item["arguments"] = json.dumps(arguments)
        else:
            _, call = played(body) if mode == "play" else ({}, None)
            # It has no tool for a result: the answer is one.
            content = [{"type": "output_text", "text": json.dumps(call[1]) if call else "the answer"}]
            item = {"type": "message", "role": "assistant", "id": name, "content": content}
        self.event("response.output_item.done", output_index=0, item=item)
        usage = {**USAGE, "total_tokens": 107}
        usage["input_tokens_details"] = {"cached_tokens": 60}
        usage["output_tokens_details"] = {"reasoning_tokens": 2}
        self.event("response.completed", response={"id": name, "usage": usage})

    def talk_chat(self, body, mode):
        has_result = any(turn.get("role") == "tool" for turn in body.get("messages", []))
        names = [tool.get("function", {}).get("name") for tool in body.get("tools") or []]
        message, stop = {"role": "assistant", "content": "the answer"}, "stop"
        if mode == "tool" and "run_shell_command" in names and not has_result:
            given = {"command": word("TOOL"), "description": "x", "is_background": False}
            call = {"name": "run_shell_command", "arguments": json.dumps(given)}
            call = {"index": 0, "id": f"call_{time.time_ns()}", "type": "function", "function": call}
            message, stop = {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"
        usage = {"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107}
        whole = {"id": f"chat_{time.time_ns()}", "created": 1, "model": body.get("model")}
        if not body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": stop}
            answer = {**whole, "object": "chat.completion", "choices": [choice], "usage": usage}
            return self.whole(200, answer)
        self.stream()
        part = {**whole, "object": "chat.completion.chunk"}
        if mode == "hang":
            begun = {"index": 0, "delta": {"role": "assistant", "content": "the"}}
            self.chunk({**part, "choices": [{**begun, "finish_reason": None}]})
            return self.hang()
        self.chunk({**part, "choices": [{"index": 0, "delta": message, "finish_reason": None}]})
        self.chunk({**part, "choices": [{"index": 0, "delta": {}, "finish_reason": stop}]})
        self.chunk({**part, "choices": [], "usage": usage})
        self.wfile.write(b"data: [DONE]\n\n")

    def chunk(self, value):
        self.wfile.write(f"data: {json.dumps(value)}\n\n".encode())
        self.wfile.flush()


if __name__ == "__main__":
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    (DIR / ".port").write_text(str(server.server_port))
    (DIR / ".port").rename(DIR / "PORT")
    server.serve_forever()
