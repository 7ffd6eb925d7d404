// `pennon rebuild persons` and splitting a person as people do it, against a whole instance.

import assert from 'node:assert/strict'
import { it } from 'node:test'
import Database from 'better-sqlite3'
import { stateFilePath } from '#adapters/sqlite/open-sqlite.ts'
import { eventually } from '../support/eventually.ts'
import { startPennon, testPersonalKey, testProjectKey } from '../support/pennon.ts'
import { callCommand } from '../support/pennon-command.ts'
import { startedForTests } from '../support/started-for-tests.ts'

interface Person {
  readonly uuid: string
  readonly distinct_ids: readonly string[]
  readonly properties: Readonly<Record<string, unknown>>
}

const pennon = startedForTests(startPennon)

async function capture(...events: readonly (readonly [name: string, id: string, properties: object])[]): Promise<void> {
  const batch = events.map(([event, distinct_id, properties]) => ({ event, distinct_id, properties }))
  assert.equal((await pennon.post('/batch/', { api_key: testProjectKey, batch })).status, 200)
  await pennon.caughtUp()
}

async function personOf(distinctId: string): Promise<Person | undefined> {
  const path = `/api/projects/1/persons/?distinct_id=${distinctId}`
  return (await pennon.api<{ results: Person[] }>('GET', path)).results[0]
}

async function plansOf(...distinctIds: readonly string[]): Promise<unknown[]> {
  return Promise.all(distinctIds.map(async id => (await personOf(id))?.properties.plan))
}

const rebuild = (...args: readonly string[]) =>
  callCommand({ PENNON_PERSONAL_KEY: testPersonalKey }, 'rebuild', 'persons', ...args, '--host', pennon.url)

it('a person that was merged wrongly is split, and stays split when persons are rebuilt', async () => {
  await capture(
    ['signed up', 'ada', { $set: { plan: 'pro' } }],
    ['signed up', 'bob', { $set: { plan: 'free' } }],
    ['$merge_dangerously', 'ada', { alias: 'bob' }],
  )
  const merged = (await personOf('ada'))!
  assert.deepEqual(merged.distinct_ids.toSorted(), ['ada', 'bob'])
  const split = await pennon.api('POST', `/api/projects/1/persons/${merged.uuid}/split/`, { main_distinct_id: 'bob' })
  assert.deepEqual(split, { success: true })
  await eventually(async () => (await personOf('ada'))?.uuid !== merged.uuid)
  assert.deepEqual(await plansOf('ada', 'bob'), ['pro', 'free'])
  assert.equal((await personOf('bob'))!.uuid, merged.uuid)
  for (const id of ['ada', 'bob']) {
    const query = { kind: 'HogQLQuery', query: `SELECT DISTINCT person_id FROM events WHERE distinct_id = '${id}'` }
    const { results } = await pennon.api<{ results: string[][] }>('POST', '/api/projects/1/query/', { query })
    assert.deepEqual(results.flat(), [(await personOf(id))!.uuid])
  }
  const { exitCode, stdout } = await rebuild('--all', '--apply')
  assert.equal(exitCode, 0)
  assert.match(stdout, /2 distinct ids checked\. Persons changed: 0, created: 0, removed: 0; distinct ids moved: 0\./)
  assert.deepEqual(await plansOf('ada', 'bob'), ['pro', 'free'])
  await capture(
    ['upgraded', 'bob', { $set: { plan: 'team' } }],
    ['$identify', 'eve', { $anon_distinct_id: 'eve-phone' }],
  )
  assert.deepEqual(await plansOf('ada', 'bob'), ['pro', 'team'])
})

it('the rebuild command shows what would change, and changes it with --apply', async t => {
  await capture(['signed up', 'eve', { $set: { plan: 'pro' } }])
  const { uuid } = (await personOf('eve'))!
  const state = new Database(stateFilePath(pennon.dataFolder))
  t.after(() => state.close())
  state.prepare(`UPDATE person SET properties = '{"plan":"?"}' WHERE uuid = ?`).run(uuid)
  const preview = await rebuild('eve')
  assert.equal(preview.exitCode, 0)
  assert.match(preview.stdout, new RegExp(`${uuid} +changed +plan `))
  assert.match(preview.stdout, /that would be changed: 1, created: 0, removed: 0/)
  assert.match(preview.stdout, /Nothing was changed\. .* add --apply\.\n$/)
  assert.deepEqual(await plansOf('eve'), ['?'])
  const { exitCode, stdout } = await rebuild(uuid, '--apply', '--json')
  const { status, apply, report } = JSON.parse(stdout)
  assert.deepEqual([exitCode, status, apply, report.changed], [0, 'completed', true, 1])
  assert.deepEqual(await plansOf('eve'), ['pro'])
})

it('the rebuild command names ids that have neither a person nor events', async () => {
  await capture(['signed up', 'fay', {}])
  const nobody = '11111111-1111-4111-8111-111111111111'
  for (const unknown of [[nobody], [nobody, 'typo']]) {
    const { exitCode, stdout } = await rebuild('fay', ...unknown)
    const [counts, ids] = stdout.split('\n')
    assert.equal(exitCode, 0)
    assert.match(counts!, /^\d+ distinct ids checked/)
    assert.ok(ids!.endsWith(`, and no event would create one: ${unknown.join(', ')}.`), stdout)
  }
  assert.doesNotMatch((await rebuild('fay')).stdout, /no event/)
  assert.match((await rebuild('fay')).stdout, /^1 distinct id checked\. /)
})

it('the rebuild command reports a missing argument or key in one line', async () => {
  for (const args of [[], ['--all', 'ada']]) {
    const { exitCode, stderr } = await rebuild(...args)
    assert.deepEqual([exitCode, stderr], [2, 'pennon: Name distinct ids or uuids of persons, or pass --all.\n'])
  }
  const { exitCode, stderr } = await callCommand({}, 'rebuild', 'persons', 'ada', '--host', pennon.url)
  assert.equal(exitCode, 2)
  assert.match(stderr, /^pennon: Set PENNON_PERSONAL_KEY to a personal API key with the scope person:write\. .*\n$/)
})
