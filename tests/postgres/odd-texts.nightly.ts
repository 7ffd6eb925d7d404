// Every text that a client controls, with characters that databases may refuse: both engines store the same, no event
// is rejected by one and stored by the other, and no chunk is retried forever.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { type Pennon, startPennonFor, testProjectKey } from '../support/pennon.ts'
import { noPostgres, startPostgres } from '../support/postgres.ts'

const odd = 'a\0b\u{1f600}\u0001"\\{}'
/** JSON text of a lone surrogate, as some SDKs write it. */
const halfPair = '\\ud800'
const at = '2026-01-01T00:00:00Z'

describe('odd texts', { skip: noPostgres() }, () => {
  it('are stored in the same way by PostgreSQL and SQLite', async t => {
    const postgres = await startPostgres()
    t.after(() => postgres.stop())
    const onSqlite = await storeOddTexts(t, {})
    const onPostgres = await storeOddTexts(t, { DATABASE_URL: await postgres.createDatabase() })
    assert.deepEqual(onPostgres, onSqlite)
    const { statuses, persons, rejected, warnedOf } = onSqlite as {
      statuses: number[]
      persons: unknown[]
      rejected: { reason: string }[]
      warnedOf: unknown[]
    }
    assert.deepEqual(statuses, [200, 200, 400])
    assert.equal(persons.length, 2)
    assert.ok(JSON.stringify(persons).includes(String.raw`"name":"a\u0000b`), 'properties keep NUL')
    assert.deepEqual(
      rejected.map(({ reason }) => reason),
      ['invalid_json'],
      'only rejects of the edge, none of the worker',
    )
    assert.deepEqual(warnedOf, ['invalid_json'], 'the warning of a reject leads to it')
  })
})

async function storeOddTexts(t: TestContext, settings: Record<string, string>): Promise<object> {
  const pennon = await startPennonFor(t, { settings })
  const events = [
    event(`e${odd}`, `id${odd}`, { [`k${odd}`]: odd, $set: { [`s${odd}`]: odd }, $set_once: { once: odd } }),
    event('$identify', `id${odd}`, { $anon_distinct_id: `anon${odd}`, $set: { name: odd } }),
    event('$identify', 'plain', { $anon_distinct_id: 'anon', $set: { name: odd }, $unset: [odd] }),
    event('$create_alias', 'plain', { alias: `alias${odd}` }),
    event('$groupidentify', 'plain', { $group_type: `t${odd}`, $group_key: `g${odd}`, $group_set: { [odd]: odd } }),
    event('$pageview', 'plain', {
      $groups: { [`t${odd}`]: `g${odd}` },
      $current_url: odd,
      $process_person_profile: true,
    }),
    event('$pageview', `ghost${odd}`, { $process_person_profile: false }),
    event('$feature_flag_called', 'plain', {
      $feature_flag: odd,
      $feature_flag_response: odd,
      [`$feature/${odd}`]: odd,
    }),
  ]
  const statuses: number[] = []
  for (const body of [
    { api_key: testProjectKey, batch: events },
    {
      api_key: testProjectKey,
      historical_migration: true,
      batch: events.map(sent => ({ ...sent, event: `h ${sent.event}` })),
    },
  ])
    statuses.push((await pennon.post('/batch/', body)).status)
  const half = `{"api_key": "${testProjectKey}", "event": "half", "distinct_id": "half${halfPair}", "timestamp": "${at}",
    "properties": {"k${halfPair}": "${halfPair}", "$set": {"k${halfPair}": "${halfPair}"}}}`
  statuses.push((await fetch(`${pennon.url}/capture/`, { method: 'POST', body: half })).status)
  await pennon.caughtUp()

  const flag = await pennon.api<Record<string, unknown>>('POST', '/api/projects/@current/feature_flags/', {
    key: 'odd',
    name: odd,
    tags: [odd],
    filters: { groups: [{ properties: [{ key: 'name', type: 'person', operator: 'exact', value: odd }] }] },
  })
  const beside = await besideFlags(pennon)
  const project = await pennon.api<Record<string, unknown>>('PATCH', '/api/projects/@current/', { name: odd })
  const decided = []
  for (const distinctId of ['plain', `id${odd}`, `id${odd}`.replaceAll('\0', '\ufffd'), 'nobody\0'])
    decided.push(await decide(pennon, distinctId))
  return {
    statuses,
    persons: await list(pennon, 'persons'),
    groupTypes: await pennon.api('GET', '/api/projects/@current/groups_types/'),
    groups: await list(pennon, 'groups', '?group_type_index=0'),
    events: ((await list(pennon, 'events', '?limit=100&orderBy=timestamp')) as { event: string }[])
      .map(({ event: name, ...rest }) => JSON.stringify([name, rest]))
      .toSorted(),
    rejected: await list(pennon, 'rejected_events'),
    warnings: await list(pennon, 'ingestion_warnings'),
    warnedOf: await rejectsOfWarnings(pennon),
    flag: [flag.name, flag.tags, flag.filters],
    project: project.name,
    decided,
    beside,
    ids: await idsOfAll(pennon),
  }
}

function event(name: string, distinctId: string, properties: object) {
  return { event: name, distinct_id: distinctId, timestamp: at, uuid: uuidOf(name, distinctId), properties }
}

/** Uuids that are the same in both runs. */
let uuidCount = 0
const uuids = new Map<string, string>()
function uuidOf(...parts: string[]): string {
  const key = parts.join(' ')
  if (!uuids.has(key)) uuids.set(key, `00000000-0000-4000-8000-${String(++uuidCount).padStart(12, '0')}`)
  return uuids.get(key)!
}

/** Lists objects without the values that differ between any two runs. */
async function list(pennon: Pennon, what: string, query = ''): Promise<unknown[]> {
  const { results } = await pennon.api<{ results: object[] }>('GET', `/api/projects/@current/${what}/${query}`)
  const changing =
    /"(id|uuid|created_at|captured_at|last_seen|timestamp|received_at|person_created_at|import_job_id|rejectId)":(?:"[^"]*"|\d+),?/g
  return results.map(result => JSON.parse(JSON.stringify(result).replaceAll(changing, '').replaceAll(',}', '}')))
}

/** Makes objects other than flags, with odd texts at every depth, and members with odd ids. */
async function besideFlags(pennon: Pennon): Promise<unknown> {
  const path = '/api/projects/@current'
  const filters = { properties: { type: 'AND', values: [{ key: odd, type: 'person', operator: 'exact', value: odd }] } }
  const bodies: [string, object][] = [
    ['cohorts', { name: odd, description: odd, filters }],
    ['cohorts', { name: 'members', is_static: true, distinct_ids: [`id${odd}`, `nobody${odd}`, 'plain\ud800'] }],
    ['surveys', { name: odd, description: odd, type: 'popover', questions: [{ type: 'open', question: odd }] }],
    ['early_access_feature', { name: odd, description: odd }],
    ['experiments', { name: odd, description: odd, feature_flag_key: 'odd-experiment' }],
  ]
  const made: unknown[] = []
  for (const [what, body] of bodies) {
    const answer = await pennon.api<Record<string, unknown>>('POST', `${path}/${what}/`, body)
    made.push([what, answer.name, answer.description, answer.filters, answer.members, answer.questions, answer.code])
  }
  const csv = `distinct_id\nid${odd.replaceAll('"', '""')}\nplain\n`
  const { members } = await pennon.api<Record<string, unknown>>('PATCH', `${path}/cohorts/2/`, { csv })
  return JSON.parse(JSON.stringify([...made, members]).replaceAll(/"id":"[0-9a-f-]{36}"/g, '"id":""'))
}

/** The distinct ids of every person, as listed. */
async function idsOfAll(pennon: Pennon): Promise<unknown[]> {
  const path = '/api/projects/@current/persons'
  const { results } = await pennon.api<{ results: { uuid: string }[] }>('GET', `${path}/`)
  const lists: unknown[] = []
  for (const { uuid } of results) {
    const page = await pennon.api<{ results: unknown }>('GET', `${path}/${uuid}/distinct_ids/`)
    lists.push(page.results)
  }
  return lists
}

/** Reasons of the rejects whose ids the warnings name. */
async function rejectsOfWarnings(pennon: Pennon): Promise<string[]> {
  const path = '/api/projects/@current'
  const { results } = await pennon.api<{ results: object[] }>('GET', `${path}/ingestion_warnings/`)
  const ids = [...JSON.stringify(results).matchAll(/"rejectId":"([^"]*)"/g)].map(([, id]) => id!)
  const reasons = ids.map(async id => {
    const { reason } = await pennon.api<{ reason: string }>('GET', `${path}/rejected_events/${id}/`)
    return reason
  })
  return Promise.all(reasons)
}

async function decide(pennon: Pennon, distinctId: string): Promise<unknown> {
  const answer = await pennon.post('/decide?v=3', { api_key: testProjectKey, distinct_id: distinctId })
  const { featureFlags, errorsWhileComputingFlags } = (await answer.json()) as Record<string, unknown>
  return [answer.status, featureFlags, errorsWhileComputingFlags]
}
