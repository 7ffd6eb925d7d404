import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { describe, it, type TestContext } from 'node:test'
import { lanes } from '#core/events/captured-event.ts'
import { collectText } from '../support/child-processes.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { startFront } from '../support/front.ts'
import { testPersonalKey, testProjectKey } from '../support/pennon.ts'
import { startedForTests } from '../support/started-for-tests.ts'
import { tempDir } from '../support/temp-dir.ts'

// Runs the command as users do, against a real front. Source: docs/operating/live-view.md.

const front = startedForTests(startFront)

function start(t: TestContext, args: readonly string[], key = testPersonalKey, url = front.url) {
  const child = spawn(process.execPath, ['src/main.ts', 'tail', '--host', url, ...args], {
    env: { ...process.env, NODE_TEST_CONTEXT: undefined, PENNON_PERSONAL_KEY: key },
  })
  t.after(() => child.kill())
  const output = collectText(child.stdout, child.stderr)
  return { output, ended: new Promise<number | null>(resolve => child.once('close', resolve)) }
}

async function post(path: string, body: string, url = front.url): Promise<number> {
  const response = await fetch(url + path, { method: 'POST', body })
  await response.arrayBuffer()
  return response.status
}

async function capture(event: string, over: object = {}, url = front.url): Promise<void> {
  const body = JSON.stringify({ api_key: testProjectKey, event, distinct_id: 'ada', ...over })
  assert.equal(await post('/capture/', body, url), 200)
}

describe('pennon tail', () => {
  it("each requested event is printed on one line, without the client's control characters", async t => {
    const { output } = start(t, ['--event', 'a\u001b[2Jb', '--event', 'c'])
    await eventually(() => output().startsWith('TIME '))
    await capture('a\u001b[2Jb', { properties: { n: 1 } })
    await capture('other')
    await capture('c', { distinct_id: 'bob\n' })
    await eventually(() => output().split('\n').length === 4)
    const [, first, second] = output().split('\n')
    assert.match(first!, /^\d{4}-\S+Z {2}a\\u001b\[2Jb +ada +\{"n":1\}$/)
    assert.match(second!, /^\S+Z {2}c +bob\\u000a +\{\}$/)
  })

  it('a reject is printed with its reason, field and the beginning of its body', async t => {
    const { output } = start(t, [])
    await eventually(() => output().startsWith('TIME '))
    const body = JSON.stringify({ api_key: testProjectKey, event: 'bad', properties: { long: 'x'.repeat(5_000) } })
    assert.equal(await post('/capture/', body), 400)
    await eventually(() => /rejected .*\n/.test(output()))
    const line = /^.*rejected .*$/m.exec(output())![0]
    assert.match(line, /rejected .*missing_distinct_id \(\S*distinct_id\) .*x…$/)
    assert.ok(line.length < 400, line)
  })

  it('an unknown key is reported in one line', async t => {
    const { output, ended } = start(t, [], `phx_${'0'.repeat(40)}`)
    assert.equal(await ended, 2)
    assert.match(
      output(),
      /^pennon: The live view of http:\S+ cannot be opened: it answered 401: .*unknown or was deleted.*\n$/,
    )
  })

  it('only events with the requested lanes and properties are shown, and no rejects with --no-rejected', async t => {
    const options = ['--lane', 'ai', '--lane', 'error_tracking, main', '--property', 'plan=pro', '--property', 'n=3']
    const { output } = start(t, [...options, '--no-rejected', '--json'])
    await eventually(() => output().startsWith('{"type":"ready",'))
    const properties = { plan: 'pro', n: 3 }
    assert.equal(await post('/capture/', JSON.stringify({ api_key: testProjectKey, properties })), 400)
    await capture('other plan', { properties: { ...properties, plan: 'free' } })
    await capture('other number', { properties: { ...properties, n: 4 } })
    await capture('$$heatmap', { properties })
    await capture('$ai_generation', { properties })
    await capture('last', { properties })
    await eventually(() => output().includes('"last"'))
    const messages = output()
      .trim()
      .split('\n')
      .map(line => JSON.parse(line))
    assert.deepEqual(
      messages.map(({ type, event, lane }) => [type, event, lane]),
      [
        ['ready', undefined, undefined],
        ['event', '$ai_generation', 'ai'],
        ['event', 'last', 'main'],
      ],
    )
  })

  it('tail reconnects after a restart, reports it on stderr, and ends when its key is deleted', async t => {
    const settings = { PENNON_DATA: tempDir(t) }
    const first = await startFront(settings)
    const { id, value } = await first.api<{ id: string; value: string }>('POST', '/api/personal_api_keys/', {
      label: 'tail',
      scopes: ['query:read'],
    })
    const { output, ended } = start(t, [], value, first.url)
    await eventually(() => output().startsWith('TIME '))
    await first.close()
    await eventually(() => /\npennon: \S+Z the live view of/.test(output()))
    const second = await startFront({ ...settings, PORT: new URL(first.url).port })
    t.after(() => second.close())
    await eventually(() => / reconnected after \d+ s\n/.test(output()))
    await capture('after', {}, second.url)
    await eventually(() => /Z {2}after +ada +/.test(output()))
    await second.api('DELETE', `/api/personal_api_keys/${id}/`)
    assert.equal(await ended, 2)
    assert.equal(output().split('TIME ').length, 2, 'the table has one head')
    const notices = output()
      .split('\n')
      .filter(line => line.startsWith('pennon: '))
      .map(line => line.replaceAll(first.url, 'URL'))
    assert.equal(notices.length, 3, output())
    assert.match(
      notices[0]!,
      /^pennon: \S+Z the live view of URL was interrupted: stopping\. Reconnecting; .*\/events\/ and \/rejected_events\/$/,
    )
    assert.match(notices[1]!, /^pennon: \S+Z the live view of URL reconnected after \d+ s$/)
    assert.match(
      notices[2]!,
      /^pennon: \S+Z the live view of URL ended: access_ended: the personal API key was deleted/,
    )
  })

  it('an unreachable instance is reported with a remedy, and the help names every lane', async t => {
    const nobody = start(t, [], testPersonalKey, `http://127.0.0.1:${await freePort()}`)
    const help = start(t, ['--help'])
    const unknown = start(t, ['--project', '77'])
    assert.deepEqual(await Promise.all([nobody.ended, help.ended, unknown.ended]), [2, 0, 2])
    assert.match(
      nobody.output(),
      /^pennon: The live view of http:\/\/127\.0\.0\.1:\d+ cannot be opened: .+ECONNREFUSED.+ --host, .*PORT.+\n$/,
    )
    assert.match(unknown.output(), /^pennon: .* cannot be opened: it answered 404: .*--project.*\n$/)
    for (const word of [...lanes, 'rejects of /s/ only', 'PENNON_ADMIN_PORT'])
      assert.ok(help.output().includes(word), word)
  })
})
