// Compares what a rehearsal predicts with what the project holds after the import is published.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Rehearsal } from '#importer/stages/report/import-report.ts'
import { eventually } from '../support/eventually.ts'
import { ImportCommands } from '../support/import-command.ts'
import { type Pennon, startPennon, testPersonalKey } from '../support/pennon.ts'
import { startedForTests } from '../support/started-for-tests.ts'
import { tempDir } from '../support/temp-dir.ts'

const at = (hour: number) => new Date(Date.UTC(2024, 4, 1, hour))
const segment = (hour: number, fields: object) => ({
  messageId: `m-${hour}`,
  timestamp: at(hour).toISOString(),
  ...fields,
})
const mixpanel = (hour: number, event: string, properties: object) => ({
  event,
  properties: { time: at(hour).getTime() / 1_000, $insert_id: `i-${hour}`, ...properties },
})
const amplitude = (hour: number, fields: object) => ({
  ...{ event_type: 'Tap', app: 1, $insert_id: `k-${hour}`, user_properties: {}, event_properties: {} },
  event_time: at(hour).toISOString().replace('T', ' ').replace('Z', '000'),
  ...fields,
})
const posthog = (hour: number, event: string, distinctId: string, properties: object) => ({
  uuid: `018f3a10-0000-7000-8000-0000000000${hour + 10}`,
  ...{ event, distinct_id: distinctId, properties, timestamp: at(hour).toISOString() },
})

const sources: Readonly<Record<string, readonly object[]>> = {
  segment: [
    segment(1, { type: 'identify', userId: 's-1', anonymousId: 'an-1', traits: { plan: 'pro' } }),
    segment(2, { type: 'identify', userId: 's-1', anonymousId: 'an-1', traits: { plan: 'free' } }),
    segment(3, { type: 'track', event: 'Tap', anonymousId: 'an-2' }),
    segment(4, { type: 'track', event: 'Tap', userId: 's-2', anonymousId: 'an-2' }),
    segment(5, { type: 'identify', userId: 's-3', anonymousId: 'an-2' }),
    segment(6, { type: 'alias', userId: 's-4', previousId: 'old-4' }),
    segment(7, { type: 'group', userId: 's-4', groupId: 'g-1', traits: { n: 1 } }),
    segment(8, { type: 'group', userId: 's-4', groupId: 'g-2' }),
  ],
  mixpanel: [
    mixpanel(1, 'Tap', { distinct_id: '$device:d-1', $device_id: 'd-1' }),
    mixpanel(2, 'Tap', { distinct_id: 'x-1', $device_id: 'd-1', $user_id: 'x-1' }),
    mixpanel(3, '$identify', { distinct_id: 'x-2', $identified_id: 'x-2', $anon_id: '$device:d-2' }),
    mixpanel(4, '$create_alias', { distinct_id: 'x-3', alias: 'y-3' }),
    mixpanel(5, 'Tap', { distinct_id: 'x-4' }),
  ],
  amplitude: [
    amplitude(1, { user_id: null, device_id: 'd-1' }),
    amplitude(2, { user_id: 'a-1', device_id: 'd-1', groups: { org: ['acme', 'other'] } }),
    amplitude(3, { user_id: 'a-2', device_id: 'd-1' }),
    amplitude(4, { user_id: 'a-3', device_id: null }),
  ],
  posthog: [
    posthog(1, '$identify', 'p-1', { $anon_distinct_id: 'q-1' }),
    posthog(2, '$create_alias', 'p-2', { alias: 'q-2' }),
    posthog(3, 'Tap', 'q-1', {}),
    posthog(4, '$groupidentify', 'p-1', { $group_type: 'org', $group_key: 'acme', $group_set: { n: 1 } }),
  ],
}

describe('a rehearsal predicts what a project contains after the import', () => {
  const pennon = startedForTests(startPennon)

  for (const [source, records] of Object.entries(sources))
    it(`for ${source}`, async t => {
      const project = await pennon.api<{ id: number; api_token: string }>('POST', '/api/projects/', { name: source })
      const commands = new ImportCommands(tempDir(t), {
        PENNON_PERSONAL_KEY: testPersonalKey,
        PENNON_PROJECT_KEY: project.api_token,
      })
      const call = async (command: string, ...options: string[]) => {
        const ended = await commands.call(command, ...options)
        assert.equal(ended.exitCode, 0, ended.stderr)
        return ended.stdout
      }
      const raw = commands.file('raw.jsonl', records.map(record => `${JSON.stringify(record)}\n`).join(''))
      await commands.plan([raw], '--source', source, '--host', pennon.url)
      const ran = JSON.parse(await call('run', '--json')) as Rehearsal & { readonly approvalSha256: string }
      const { predicted, balance, approvalSha256 } = ran
      assert.equal(balance.rejected, 0)
      await call('run', '--yes', approvalSha256)
      await call('publish', '--project', source)
      const count = async (query: string) => {
        const body = { query: { kind: 'HogQLQuery', query } }
        const answer = await pennon.api<{ results: [[number]] }>('POST', `/api/projects/${project.id}/query/`, body)
        return answer.results[0][0]
      }
      const { events, persons, groups } = predicted
      // SQL sees persons and groups about half a second later.
      await eventually(async () => {
        const held = {
          events: await count('SELECT count() FROM events'),
          persons: await count('SELECT count() FROM persons'),
          groups: await count('SELECT count() FROM groups'),
        }
        assert.deepEqual({ events, persons, groups }, held)
        return true
      })
      const ids = new Set(await distinctIdsOf(pennon, project.id))
      assert.equal(predicted.merges, ids.size - predicted.persons)
    })
})

/** The distinct ids of all persons. */
async function distinctIdsOf(pennon: Pennon, project: number): Promise<readonly string[]> {
  const { results } = await pennon.api<{ results: { distinct_ids: string[] }[] }>(
    'GET',
    `/api/projects/${project}/persons/?limit=100`,
  )
  return results.flatMap(({ distinct_ids }) => distinct_ids)
}
