import assert from 'node:assert/strict'
import { it } from 'node:test'
import { startManagement } from '../support/management-api.ts'

const bodies: [text: string, detail: RegExp][] = [
  ['{a: 1}', /: Expected property name or '}' \(line 1 column 2\)\.$/],
  ['{"a": 1,\n "b": }', /: Unexpected token '}'\.$/],
  ['{"a": 1 "b": 2}', /: Expected ',' or '}' after property value \(line 1 column 9\)\.$/],
  ['{"a": "b', /: Unterminated string \(line 1 column 9\)\.$/],
  ['{"a":', /: Unexpected end of JSON input\.$/],
  ['hunter2', /: Unexpected token 'h'\.$/],
]

it('the error for a body that is not JSON has the problem and its position, and does not quote the body', async t => {
  const api = await startManagement(t)
  for (const [body, expected] of bodies) {
    const response = await fetch(`${api.url}/api/projects/1/feature_flags/`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${await api.addKey(['*'])}`, 'Content-Type': 'application/json' },
      body,
    })
    const { detail, code } = (await response.json()) as { detail: string; code: string }
    assert.deepEqual([response.status, code], [400, 'invalid'], body)
    assert.match(detail, expected)
    assert.doesNotMatch(detail, /hunter2|"b"/)
  }
})
