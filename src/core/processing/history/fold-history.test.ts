import assert from 'node:assert/strict'
import { describe, it, test } from 'node:test'
import fc from 'fast-check'
import type { CapturedEvent } from '#core/events/captured-event.ts'
import { findTrafficOfLane } from '#core/events/log-stream.ts'
import { usualOptions } from '#core/imports/import-job.ts'
import type { JsonObject } from '#core/json.ts'
import type { ProjectState } from '#core/processing/chunk-state.ts'
import { ids, imported, live, mixedActs, mixedLiveActs } from '../../../../tests/import/jobs/random-acts.ts'
import { runs } from '../../../../tests/support/nightly.ts'
import { anEvent, anImportedEvent } from '../../../../tests/support/values.ts'
import { aWorld, type World } from '../../../../tests/support/world/world.ts'
import { foldHistory, foldHistoryWithAndWithoutJob, type History } from './fold-history.ts'
import { type HistoricEvent, orderHistory, type PublishedJob } from './historic-event.ts'

const groups = ['x', 'y'].flatMap(key => ['org', 'team'].map(typeName => ({ typeName, key })))

/** Processes each event as one chunk. */
async function processed(events: readonly CapturedEvent[]): Promise<World> {
  const world = aWorld()
  world.events.nowMs = world.clock.nowMs
  for (const event of events) await world.apply(event)
  return world
}

async function historiesOf({ state, events }: World, change = (event: HistoricEvent): HistoricEvent => event) {
  const project = state.projects.get(1)!
  const jobs = new Map<number, PublishedJob>()
  for (const id of [5, 6]) jobs.set(id, { id, options: usualOptions, publishBeganAtMs: Number.MAX_SAFE_INTEGER })
  const historyOf = async (of: History['of']): Promise<History> => {
    const subjects = of === 'persons' ? { distinctIds: [...ids, 'f', 'guest'] } : { groups }
    const items = orderHistory((await events.readHistory(1, subjects)).map(change), jobs)
    return { project, groupTypes: state.groupTypes, of, items }
  }
  return [await historyOf('persons'), await historyOf('groups')] as const
}

/** Persons by distinct id, and groups by type and key. */
function shown(persons: ProjectState, ofGroups: ProjectState) {
  return {
    persons: new Map(
      Array.from(persons.mappings, ([id, { person }]) => {
        const { uuid, properties, marks, createdAtMs, isIdentified } = person
        return [id, { uuid, properties, marks, createdAtMs, isIdentified }]
      }),
    ),
    groups: new Map(
      ofGroups.changedGroups().map(({ row: { typeIndex, key, properties, marks, createdAtMs } }) => {
        return [`${typeIndex} ${key}`, { properties, marks, createdAtMs }]
      }),
    ),
  }
}

async function assertFoldsAsProcessed(events: readonly CapturedEvent[]): Promise<void> {
  const world = await processed(events)
  const folded = shown(...((await historiesOf(world)).map(foldHistory) as [ProjectState, ProjectState]))
  const persons = Array.from(world.state.mappings.values(), ({ distinctId }) => {
    const { uuid, properties, marks, createdAtMs, isIdentified } = world.person(distinctId)!
    return [distinctId, { uuid, properties, marks, createdAtMs, isIdentified }] as const
  })
  assert.deepEqual(folded.persons, new Map(persons))
  const stored = Array.from(world.state.groups.values(), ({ typeIndex, key, properties, marks, createdAtMs }) => {
    return [`${typeIndex} ${key}`, { properties, marks, createdAtMs }] as const
  })
  assert.deepEqual(folded.groups, new Map(stored))
}

describe('folding stored events', () => {
  const e = (id: string, properties: JsonObject = {}, over: Partial<CapturedEvent> = {}, name = 'e') =>
    anEvent(name, id, properties, over)
  const link = (id: string, other: string) => anEvent('$identify', id, { $anon_distinct_id: other })
  const org = { $group_type: 'org', $group_key: 'x' }
  const cases: Readonly<Record<string, readonly CapturedEvent[]>> = {
    'values that are set, set once and removed': [
      e('a', { $set: { k: 1, l: 1 }, $set_once: { m: 1 } }),
      e('a', { $set: { k: 2 }, $set_once: { m: 2 }, $unset: ['l'] }),
    ],
    'properties that an event writes by itself': [
      e('a', { $browser: 'Chrome', $current_url: 'https://example.com/?utm_source=x' }),
      e('a', { $browser: 'Firefox', $os: 'Linux' }, {}, '$set'),
    ],
    'an exception, which writes to a new person only': [
      e('a', { $set: { k: 1 } }, {}, '$exception'),
      e('a', { $set: { k: 2 } }, {}, '$exception'),
    ],
    'a change of keys that alone is not written': [e('a', { $set: { $os: 'x' } }), e('a', { $set: { $os: 'y' } })],
    'links, of which one is refused, and one is dangerous': [
      ...[e('a', { $set: { k: 1 } }), e('b', { $set: { k: 2, l: 2 } }), link('a', 'b'), link('c', 'd')],
      ...[
        link('a', 'c'),
        e('a', { alias: 'c' }, {}, '$merge_dangerously'),
        e('e', { alias: 'a' }, {}, '$create_alias'),
      ],
    ],
    'a link with an id that links nothing': [e('a'), link('a', 'guest'), link('b', 'b')],
    'events without a person before a link': [e('b', { $process_person_profile: false }), link('a', 'b')],
    'events of the AI lane, which change nothing': [
      e('a', { $set: { k: 1 } }, { lane: 'ai' }),
      e('a'),
      e('a', { ...org, $group_set: { k: 1 } }, { lane: 'ai' }, '$groupidentify'),
    ],
    'groups, which an event without a person does not describe': [
      e('a', { ...org, $group_set: { k: 1, l: 1 }, $set: { k: 1 } }, {}, '$groupidentify'),
      e('a', { ...org, $group_set: { k: 2 }, $process_person_profile: false }, {}, '$groupidentify'),
      e('a', { ...org, $group_set: { l: 2 }, $group_unset: ['k'] }, {}, '$groupidentify'),
    ],
    'an event that is sent twice': (event => [
      event,
      e('a', { $set_once: { k: 2 }, $unset: ['k'] }, {}, '$set'),
      event,
    ])(e('a', { $set_once: { k: 1 } })),
    'imports, which never replace live values, and set the time of creation': [
      e('a', { $set: { k: 1 } }),
      anImportedEvent('e', 'a', 5, { $set: { k: 2, l: 2 } }),
      anImportedEvent('$groupidentify', 'a', 5, { ...org, $group_set: { k: 1 } }),
      anImportedEvent('$groupidentify', 'a', 9, { ...org, $group_set: {}, $group_unset: ['k'] }),
    ],
    'a value that is too large': [e('a', { $set: { k: 1 } }), e('a', { $set: { l: 'x'.repeat(700_000) } })],
  }
  for (const [name, events] of Object.entries(cases)) it(name, () => assertFoldsAsProcessed(events))

  it('gives the same result as processing them did, for random events', async () => {
    const lists = fc.array(
      fc.oneof(
        { weight: 2, arbitrary: mixedLiveActs.map(acts => acts.map(live)) },
        mixedActs.map(acts => acts.map(imported(1))),
      ),
      { maxLength: 3 },
    )
    await fc.assert(
      fc.asyncProperty(lists, events => assertFoldsAsProcessed(events.flat())),
      { numRuns: runs(50, 2_000) },
    )
  })
})

test('folding a history with and without a job in one pass gives the same results as two separate passes', async () => {
  const large = live({ name: 'e', id: 'a', properties: { $set: { large: 'x'.repeat(5_000) } } }, 0)
  await fc.assert(
    fc.asyncProperty(mixedLiveActs, mixedActs, mixedLiveActs, fc.boolean(), async (before, during, after, isDay) => {
      const events = [...before.map(live), large, ...during.map(imported(1)), ...after.map(live)]
      const world = await processed(events)
      const ofJobs = (event: HistoricEvent): HistoricEvent => {
        if (findTrafficOfLane(event.lane) === 'live') return event
        return { ...event, importJobId: event.logOffset % 2 === 0 ? 5 : 6, isOfJob: !isDay }
      }
      const histories = await historiesOf(world, ofJobs)
      const both = histories.map(history => foldHistoryWithAndWithoutJob(history, 5))
      const rest = histories.map(({ items, ...history }) => {
        const isOther = (item: (typeof items)[number]) =>
          (item.job === null ? item.event.importJobId : item.job.id) !== 5
        return foldHistory({ ...history, items: items.filter(isOther) })
      })
      assert.deepEqual(shown(both[0]!.with, both[1]!.with), shown(foldHistory(histories[0]), foldHistory(histories[1])))
      assert.deepEqual(shown(both[0]!.without, both[1]!.without), shown(rest[0]!, rest[1]!))
    }),
    { numRuns: runs(50, 2_000) },
  )
})
