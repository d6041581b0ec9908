"""A real SMTP server that keeps what it gets: one JSON file a mail, as Python's own parser reads it.

    smtp_sink.py PORT FOLDER

While FOLDER/answer exists, its text (such as "451 4.7.0 later") is the answer to every mail instead.
"""

import asyncio
import base64
import email
import email.policy
import itertools
import json
import pathlib
import sys

from aiosmtpd.controller import Controller

port, folder = int(sys.argv[1]), pathlib.Path(sys.argv[2])
count = itertools.count(len(list(folder.glob("*.json"))))


class Keep:
    async def handle_DATA(self, server, session, envelope):
        answer = folder / "answer"
        if answer.exists():
            (folder / "refused").open("a").write("x")
            return answer.read_text().strip()
        message = email.message_from_bytes(envelope.content, policy=email.policy.default)
        body = lambda kind: (part := message.get_body((kind,))) and part.get_content()
        mail = {
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "headers": [[name, str(value)] for name, value in message.items()],
            "defects": [str(defect) for part in message.walk() for defect in part.defects],
            "text": body("plain"),
            "html": body("html"),
            "attachments": [
                {
                    "name": part.get_filename(),
                    "type": part.get_content_type(),
                    "base64": base64.b64encode(part.get_payload(decode=True)).decode(),
                }
                for part in message.iter_attachments()
            ],
        }
        new = folder / f"{next(count):04}.new"
        new.write_text(json.dumps(mail))
        new.rename(new.with_suffix(".json"))
        return "250 kept"


Controller(Keep(), hostname="127.0.0.1", port=port).start()
asyncio.new_event_loop().run_forever()
