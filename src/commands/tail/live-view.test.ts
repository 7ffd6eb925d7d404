import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { describe, it, type TestContext } from 'node:test'
import { notFound, unknownPublicPath } from '#wire/wire-error.ts'
import { serve } from '../../../tests/support/local-server.ts'
import { watchLiveView } from './live-view.ts'

const ready = 'event: ready\ndata: {"project":{"id":1}}\n\n'

/** Watches a server that answers as given. @returns the messages, by kind and data, and the end. */
async function watched(
  t: TestContext,
  answer: (response: ServerResponse) => void,
  { silentAfterMs = 60_000, monotonicNowMs = (): number => 0 } = {},
) {
  const url = new URL(await serve(t, (_request, response) => answer(response)))
  const kinds: string[] = []
  const all: unknown[] = []
  const end = await watchLiveView({
    url,
    personalKey: 'phx_key',
    onMessage: (kind, data) => {
      kinds.push(kind)
      all.push(data)
    },
    silentAfterMs,
    monotonicNowMs,
  })
  return { kinds, all, ...end }
}

function streaming(response: ServerResponse, text = ready): ServerResponse {
  response.writeHead(200, { 'content-type': 'text/event-stream' }).write(text)
  return response
}

/** Ends the connection in the middle of an answer. */
function closing(chunked: string) {
  return (response: ServerResponse) => {
    const head =
      'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n'
    response.socket!.end(head + chunked)
  }
}

function refusing(status: number, body: string, headers: Record<string, string> = {}) {
  return (response: ServerResponse) => void response.writeHead(status, headers).end(body)
}

function errorBody(code: string, detail: string, attr: string | null = null): string {
  return JSON.stringify({ type: 'invalid_request', code, detail, attr })
}

describe('a single connection to a live view', () => {
  it('may be retried after any kind of close, and when the instance stops', async t => {
    const cut = await watched(t, response => {
      streaming(response)
      setTimeout(() => response.destroy(), 20)
    })
    assert.deepEqual([cut.kinds, cut.isFinal, cut.reason], [['ready'], false, 'the connection was closed'])
    const closed = await watched(t, response => void streaming(response).end())
    assert.deepEqual([closed.isFinal, closed.reason], [false, 'the connection was closed'])
    for (const chunked of ['', '50\r\nevent: '])
      assert.equal((await watched(t, closing(chunked))).reason, 'the connection was closed')
    const unanswered = await watched(t, response => response.destroy())
    assert.deepEqual([unanswered.isFinal, unanswered.reason], [false, 'the connection was closed'])
    assert.ok(![cut, closed, unanswered].some(end => 'silentMs' in end))
    const stopping = await watched(
      t,
      response => void streaming(response, `${ready}event: end\ndata: {"reason":"stopping"}\n\n`),
    )
    assert.deepEqual([stopping.kinds, stopping.isFinal, stopping.reason], [['ready', 'end'], false, 'stopping'])
  })

  it('counts as lost when nothing arrives any more, with the length of the silence', async t => {
    // The clock is read at the start, with each chunk, and at the end.
    const asked: number[] = []
    const monotonicNowMs = () => {
      asked.push(asked.length * 1_000)
      return asked.at(-1)!
    }
    const silent = await watched(t, response => void streaming(response), { silentAfterMs: 100, monotonicNowMs })
    assert.deepEqual([silent.kinds, silent.isFinal, silent.reason], [['ready'], false, 'no data for 0.1 s'])
    assert.deepEqual([asked.length, silent.silentMs], [3, 1_000])
  })

  it('accepts text with U+2028 and the like, which JSON does not escape', async t => {
    const sent = { event: 'a\u2028event: end\u2029b\u0085' }
    const message = `event: event\ndata: ${JSON.stringify(sent)}\n\n`
    const { kinds, all } = await watched(t, response => void streaming(response, ready + message).end())
    assert.deepEqual([kinds, JSON.stringify(all[1])], [['ready', 'event'], JSON.stringify(sent)])
  })

  it('is not retried if its key or its project is refused', async t => {
    const ended = await watched(
      t,
      response => void streaming(response, `event: end\ndata: {"reason":"access_ended"}\n\n`),
    )
    assert.equal(ended.isFinal, true)
    assert.match(ended.reason, /the personal API key was deleted/)
    const noKey = await watched(t, refusing(401, errorBody('not_authenticated', 'This key is unknown.')))
    assert.deepEqual([noKey.isFinal, noKey.reason], [true, 'it answered 401: This key is unknown.'])
    const noProject = await watched(t, refusing(404, errorBody('not_found', 'Not found.')))
    assert.deepEqual(
      [noProject.isFinal, noProject.reason],
      [true, 'it answered 404: Not found. Check --project and --host.'],
    )
    for (const { detail } of [notFound, unknownPublicPath]) {
      const elsewhere = await watched(t, refusing(404, errorBody('not_found', detail)))
      assert.equal(elsewhere.isFinal, true)
      assert.match(elsewhere.reason, /it answered 404: Unknown path[.:].* Check --host: .*PENNON_ADMIN_PORT/)
    }
    const misread = await watched(t, refusing(400, errorBody('invalid_input', 'Must be one or more of main.', 'lane')))
    assert.deepEqual([misread.isFinal, misread.reason], [true, 'it answered 400: lane: Must be one or more of main.'])
    const page = await watched(t, refusing(200, '<html>', { 'content-type': 'text/html' }))
    assert.deepEqual([page.isFinal, page.reason], [true, 'it answered with text/html, which is not a live view'])
  })

  it('may be retried if the instance is busy, or a proxy answers in its place', async t => {
    const busy = await watched(t, refusing(503, errorBody('stopping', 'Try again.'), { 'retry-after': '3' }))
    assert.deepEqual([busy.isFinal, busy.reason, busy.retryAfterMs], [false, 'it answered 503: Try again.', 3_000])
    const away = await watched(t, refusing(404, 'no such backend'))
    assert.deepEqual([away.isFinal, away.reason], [false, 'it answered 404: no such backend'])
    const page = await watched(t, refusing(502, '\n<!DOCTYPE html><html>'))
    assert.deepEqual([page.isFinal, page.reason], [false, 'it answered 502, but not like Pennon'])
    assert.equal((await watched(t, refusing(403, '<html>'))).isFinal, true)
  })
})
