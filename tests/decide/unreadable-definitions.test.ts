// An unreadable stored flag is logged for the operator when its project is compiled, once per revision.

import assert from 'node:assert/strict'
import { Writable } from 'node:stream'
import { describe, it } from 'node:test'
import { pino } from 'pino'
import { startFront } from '../support/front.ts'
import { testProjectKey } from '../support/pennon.ts'

const flagsPath = '/api/projects/@current/feature_flags/'

describe('a stored flag that cannot be read', () => {
  it('is logged once per revision of its project, not once per request, and does not affect other flags', async t => {
    const lines: Record<string, unknown>[] = []
    const sink = new Writable({
      write(chunk, _encoding, done) {
        lines.push(JSON.parse(chunk))
        done()
      },
    })
    const front = await startFront({}, pino({ level: 'warn' }, sink))
    t.after(() => front.close())
    const told = () => lines.filter(({ msg }) => msg === 'a stored flag cannot be evaluated')
    const ask = async (path: string) => {
      const body = JSON.stringify({ api_key: testProjectKey, distinct_id: 'ada' })
      const response = await fetch(front.url + path, { method: 'POST', body })
      assert.equal(response.status, 200)
      return Object.keys(((await response.json()) as { flags: object }).flags)
    }
    await front.api('POST', flagsPath, { key: 'sound', filters: { groups: [{ properties: [] }] } })
    assert.deepEqual(told(), [])
    const broken = await front.api<{ id: number }>('POST', `${flagsPath}?skip_validation=true`, {
      key: 'broken',
      filters: { groups: 'all' },
    })
    for (let count = 0; count < 5; count++) assert.deepEqual(await ask('/flags?v=2'), ['sound'])
    assert.deepEqual(
      told().map(({ level, projectId, flagId, flagKey }) => ({ level, projectId, flagId, flagKey })),
      [{ level: 40, projectId: 1, flagId: broken.id, flagKey: 'broken' }],
    )
    assert.match(told()[0]!.message as string, /groups/)

    // One of a version that is not known is logged alike, and answered as failed.
    await front.api('POST', `${flagsPath}?skip_validation=true`, {
      key: 'newer',
      active: true,
      filters: { version: 3 },
    })
    for (let count = 0; count < 5; count++) assert.deepEqual(await ask('/flags?v=2'), ['sound', 'newer'])
    assert.deepEqual(
      told().map(({ flagKey }) => flagKey),
      ['broken', 'broken', 'newer'],
    )
    assert.match(told()[2]!.message as string, /^fails for all users because its definition cannot be evaluated: /)

    await front.api('POST', flagsPath, { key: 'another', filters: { groups: [{ properties: [] }] } })
    for (let count = 0; count < 5; count++) assert.deepEqual(await ask('/flags?v=2'), ['sound', 'newer', 'another'])
    assert.equal(told().length, 5)
    assert.deepEqual(lines, told(), 'nothing else is worth a line')
  })
})
