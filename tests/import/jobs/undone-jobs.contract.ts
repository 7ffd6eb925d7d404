// Histories that once went wrong, or are near to it: undoing their jobs, in any order, leaves everything as if the jobs'
// events had never been sent. `random-histories.contract.ts` looks for others.

import { describe, it } from 'node:test'
import type { CapturedEvent } from '#core/events/captured-event.ts'
import type { JsonObject } from '#core/json.ts'
import { dayMs } from '#core/time.ts'
import type { OpenSqlState } from '../../support/state.ts'
import { anEvent, anImportedEvent } from '../../support/values.ts'
import { assertAsIfNeverSent, type Step } from './never-sent.ts'
import { inWorlds } from './random-acts.ts'

type Sent = readonly [id: string, properties?: JsonObject, atDay?: number]

/** The name of an event with these properties. */
function nameOf(properties: JsonObject): string {
  if ('$anon_distinct_id' in properties) return '$identify'
  if ('alias' in properties) return '$merge_dangerously'
  if ('$group_key' in properties) return '$groupidentify'
  return '$unset' in properties ? '$set' : 'e'
}

/** At the given day, or on day 200 and later ones. */
function live(...sent: readonly Sent[]): Step {
  const toEvent = ([id, properties = {}, atDay]: Sent, index: number) =>
    anEvent(nameOf(properties), id, properties, { timestampMs: (atDay ?? 200) * dayMs + index })
  return { live: sent.map(toEvent) }
}

function imports(sent: readonly Sent[]): CapturedEvent[] {
  return sent.map(([id, properties = {}, atDay = 1]) =>
    anImportedEvent(nameOf(properties), id, atDay * dayMs, properties),
  )
}

const publish = (name: string): Step => ({ publish: name })
const send = (name: string, ...sent: readonly Sent[]): Step => ({ send: name, events: imports(sent) })
/** Sends a job's events and publishes it. */
const job = (name: string, ...sent: readonly Sent[]): readonly Step[] => [send(name, ...sent), publish(name)]
/** Imports without a job, sent on this day. */
const day = (place: number, ...sent: readonly Sent[]): Step => ({
  day: `day ${place}`,
  events: imports(sent).map(event => ({ ...event, capturedAtMs: event.capturedAtMs + place * dayMs })),
})

const set = (k: JsonObject[string]): JsonObject => ({ $set: { k } })
const setOnce = (k: JsonObject[string]): JsonObject => ({ $set_once: { k } })
const unset: JsonObject = { $unset: ['k'] }
const link = (other: string): JsonObject => ({ $anon_distinct_id: other })
const group = ($group_set: JsonObject, more: JsonObject = {}): JsonObject => ({
  ...{ $group_type: 'org', $group_key: 'x', $group_set },
  ...more,
})
const userAndDevice = live(['user', { $set: { u: 1 } }], ['device', { $set: { d: 1 } }])
/** The job `a` with one link. */
const linking = job('a', ['user', link('device')])
const userAndAnon = live(['anon'], ['user'])
const large = 'x'.repeat(400_000)

type Cases = Readonly<Record<string, readonly (Step | readonly Step[])[]>>

const anonWithoutPerson = live(['anon', { $process_person_profile: false }])

const links: Cases = {
  'a link of an id that live events use without a person': [job('a', ['user', link('anon')]), anonWithoutPerson],
  'a link of an id that was used without a person while a job, undone since, had given it one': [
    ...[job('a', ['anon']), anonWithoutPerson, { undo: 'a' }],
    ...[live(['user', link('anon')]), job('b', ['user', set(1)])],
  ],
  'a link that a live event repeated': [userAndDevice, linking, live(['user', link('device')])],
  'a link that a live event had asked for, and that was refused before': [
    live(['a'], ['user', link('device')], ['a', link('device')]),
    job('a', ['a', { alias: 'device' }]),
  ],
  'a merge that a live event extended': [
    live(['user', { $set: { u: 1 } }], ['device', { $set: { d: 1 } }], ['third', { $set: { t: 1 } }]),
    linking,
    live(['user', link('third')]),
  ],
  'a merge after which the merged id wrote values': [userAndDevice, linking, live(['device', { $set: { late: 1 } }])],
  'a link that identified a person, which was written to since': [live(['user']), linking, live(['user', set(1)])],
  'a link that makes a live one impossible': [linking, live(['other'], ['other', link('device')])],
  'a link to a person of the job': [live(['user']), job('a', ['device', set(1), 300]), live(['user', link('device')])],
  'two persons of the job that live events merged': [
    job('a', ['user', { $set: { k: 1 } }], ['anon', { $set: { l: 1 } }]),
    live(['user', link('anon')]),
  ],
  'a link that two jobs made': [userAndDevice, linking, job('b', ['user', link('device')])],
  'links of one person to different devices': [userAndDevice, linking, job('b', ['user', link('tablet')])],
  'links that form a chain': [userAndDevice, linking, job('b', ['device', link('tablet')])],
  'a merge of a merge': [
    userAndDevice,
    linking,
    job('b', ['boss', { $set: { b: 1 } }], ['boss', { alias: 'user' }, 2]),
  ],
  'links of one person to several others, made by two jobs': [
    live(['user'], ['tablet', set(1)]),
    send('a', ['user', link('device')], ['user', link('tablet')]),
    send('b', ['user', link('device')], ['user', link('tablet')]),
    ...[publish('a'), publish('b')],
  ],
  'a person that a refused link of another job identified, too': [
    live(['user'], ['device'], ['known', link('other')]),
    linking,
    job('b', ['device', link('known')]),
  ],
  'a person that a refused live link identified, too': [
    live(['user'], ['device'], ['known', link('other')]),
    linking,
    live(['device', link('known')]),
  ],
  'a link by a visitor without a person, after another job with the link was undone': [
    live(['anon', { $process_person_profile: false }]),
    ...[job('a', ['user', link('anon')]), { undo: 'a' }, live(['user', link('anon')]), job('b', ['user', set(1)])],
  ],
  'a link of two jobs that differ in their times, and one of them in its target': [
    userAndDevice,
    job('a', ['user', link('device'), 3], ['third', link('device'), 4]),
    job('b', ['third', link('device'), 2]),
  ],
  'flag assignments that a merge moved': [
    live(['user'], ['device']),
    { assign: 'user', hashKeys: { beta: 'user-key' } },
    { assign: 'device', hashKeys: { beta: 'device-key', gamma: 'device-key' } },
    linking,
  ],
  'flag assignments that two merges moved': [
    live(['user'], ['tablet'], ['device']),
    { assign: 'tablet', hashKeys: { beta: 'tablet-key' } },
    { assign: 'device', hashKeys: { gamma: 'device-key' } },
    job('a', ['tablet', link('device')], ['user', { alias: 'tablet' }, 2]),
  ],
}

const values: Cases = {
  'a value that live data replaced': [
    live(['a', { $set: { kept: 1 } }]),
    job('a', ['a', { $set: { k: 'old', city: 'Oslo' } }]),
    live(['a', set('new')]),
  ],
  'a person that live events used': [job('a', ['new', set(1)]), live(['new'])],
  'a group that live events described': [job('a', ['a', group({ tier: 1 })]), live(['a', group({})])],
  'a group property that the job removed': [
    job('a', ['a', group({ tier: 1, seats: 5 })]),
    job('b', ['a', group({}, { $group_unset: ['tier'] }), 2]),
  ],
  'a blocked live first touch': [live(['a']), job('a', ['a', setOnce('old')]), live(['a', setOnce('live')])],
  'live values that were not written, because a merge had brought another': [
    live(['user'], ['device', { $browser: 'Chrome' }]),
    linking,
    live(['user', { $browser: 'Firefox' }], ['user', { $browser: 'Safari' }]),
  ],
  'a live value that a merge had brought, too': [
    live(['user'], ['device', { $browser: 'Chrome' }]),
    linking,
    live(['user', { $browser: 'Firefox' }], ['user', { $browser: 'Chrome' }]),
  ],
  // Without the job, the first touch would have been written, and the minor change with it.
  'a minor change that came with a blocked first touch': [
    job('a', ['anon', setOnce(1)]),
    live(['user', link('anon')], ['user', { $set: { $os: 'old' } }]),
    live(['user', { $set: { $os: 'new' }, ...setOnce(1) }], ['user', set(2)]),
  ],
  'a minor change that came with a first touch of another person': [
    job('a', ['anon', setOnce(1)]),
    live(['other', setOnce(1)], ['user', link('anon')], ['user', { $set: { $os: 'old' } }]),
    live(['user', { $set: { $os: 'new' }, ...setOnce(1) }], ['anon', link('other')]),
  ],
  'values of two jobs': [live(['a']), job('a', ['a', set(1), 2]), job('b', ['a', set(2), 3])],
  'a value that another job removed': [
    live(['a', { $set: { live: 1 } }]),
    job('a', ['a', set(1), 2]),
    job('b', ['a', unset, 3]),
  ],
  'values of two jobs, of which the earlier ones came last': [
    live(['a'], ['a', group({ live: 1 })]),
    job('a', ['a', { ...set(1), $set_once: { once: 1 } }, 5], ['a', group({ k: 1 }), 5]),
    job('b', ['a', { ...set(2), $set_once: { once: 2 } }, 3], ['a', group({ k: 2 }), 3]),
  ],
  'values of three jobs': [
    live(['a']),
    job('a', ['a', set(1), 5]),
    job('b', ['a', set(2), 3]),
    job('c', ['a', set(3), 7]),
  ],
  'a live first touch before another job': [
    live(['a']),
    job('a', ['a', { $set: { k: 1, l: 1 } }, 5]),
    live(['a', setOnce('live')]),
    job('b', ['a', { $set: { k: 2, l: 2 } }, 3]),
    live(['a', { $set_once: { l: 'live' } }]),
  ],
  'a hidden value that no longer fits into the person': [
    live(['a']),
    job('a', ['a', set(1), 5]),
    job('b', ['a', set(large), 4]),
    live(['a', { $set: { l: large } }]),
  ],
  'values set once in one job, and set in another': [
    live(['user']),
    job('a', ['user', set(1), 5]),
    job('b', ['user', setOnce(2), 3]),
  ],
}

const times: Cases = {
  'creation times that several jobs lowered': [
    live(['a'], ['a', group({ l: 1 })]),
    job('a', ['a', { $set: { 2: 1 } }, 2], ['a', group({}), 2]),
    job('b', ['a', { $set: { 4: 1 } }, 4], ['a', group({}), 4]),
    job('c', ['a', { $set: { 3: 1 } }, 3], ['a', group({}), 3]),
  ],
  'a creation time that a live merge took over': [
    live(['user'], ['device']),
    job('a', ['device', set(1)]),
    live(['user', link('device')]),
  ],
  'a creation time that one job gave a person that another had merged': [
    userAndAnon,
    job('a', ['user', link('anon')]),
    job('b', ['anon', {}, 8]),
  ],
  'creation times of persons that a later job merged': [
    live(['user', {}, 200], ['anon', {}, 4]),
    job('a', ['user', {}, 2]),
    job('b', ['user', link('anon'), 8]),
  ],
}

const removals: Cases = {
  'a removal that a live event repeated': [
    job('a', ['user', set(1)]),
    job('b', ['user', unset, 2]),
    live(['user', unset]),
  ],
  'a value that a live event removed, and a later job set again': [
    job('a', ['user', set(2), 9]),
    job('b', ['user', set(1), 1]),
    live(['user', unset]),
    job('c', ['user', set(3), 3]),
  ],
  'a value that came with a merge after a live removal': [
    job('a', ['user', set(1)]),
    job('b', ['anon', setOnce(2), 5]),
    live(['user', unset], ['user', link('anon')]),
  ],
  'a value that the removing live event set once': [
    live(['user']),
    job('a', ['user', set(2), 9]),
    job('b', ['user', set(1)]),
    live(['user', { ...setOnce(3), ...unset }]),
  ],
  'a value that the removing live event set': [
    live(['user']),
    job('a', ['user', set(2), 9]),
    live(['user', { ...set(3), ...unset }]),
  ],
  'a live removal, after a removal by the job and an import of the same day': [
    job('a', ['user', set(1)]),
    job('b', ['user', unset, 5]),
    day(0, ['user', set(2), 3]),
    live(['user', unset]),
  ],
  'a live removal on a merged person': [
    live(['anon', set(1)], ['user']),
    job('a', ['user', link('anon')]),
    live(['anon', unset], ['user', set(2)]),
  ],
  'a live removal on a person that live events merged since': [
    live(['user'], ['anon'], ['other']),
    job('a', ['user', set(9), 9]),
    live(['user', link('other')], ['other', setOnce(1)], ['anon', unset], ['user', link('anon')]),
  ],
  'a live removal on a merged person with the value of another job': [
    live(['user'], ['anon']),
    job('a', ['user', set(9), 9]),
    job('b', ['anon', set(1)]),
    live(['anon', unset], ['user', link('anon')]),
  ],
  'a live removal on a merged person after a removal by the job': [
    userAndAnon,
    job('a', ['user', set(1)]),
    job('b', ['user', unset, 2]),
    live(['anon', unset], ['user', link('anon')]),
  ],
}

const merged: Cases = {
  'values that the job set and set once on persons merged by another': [
    job('a', ['user'], ['anon', set(2), 9], ['other', setOnce(1), 2]),
    job('b', ['user', link('other'), 8], ['user', link('anon'), 8]),
  ],
  'values of an earlier job and of the merging one': [
    job('a', ['anon', set(3), 7]),
    job('b', ['user'], ['anon', set(2), 9], ['other', setOnce(1), 2]),
    job('c', ['user', link('other'), 8], ['user', link('anon'), 8], ['other', set(4), 6]),
  ],
  'live values that two merges brought into a person that was used since': [
    live(['user'], ['anon', setOnce(0)], ['other', setOnce(0)]),
    job('a', ['user', link('anon'), 8]),
    job('b', ['user', link('other'), 8]),
    live(['user', { $set: { l: 1 } }]),
  ],
  'a live first touch that another import hid in a merge': [
    job('a', ['user', unset, 8]),
    job('b', ['anon', set(1)]),
    live(['anon', setOnce(2)], ['user', link('anon')]),
  ],
  'a value that was shadowed by that of a merged person': [
    userAndAnon,
    job('a', ['user', set(1)]),
    job('b', ['anon', set(2), 5]),
    live(['user', link('anon')]),
  ],
  'a value set once that was shadowed by that of a merged person': [
    userAndAnon,
    job('a', ['user', setOnce(1), 5]),
    job('b', ['anon', setOnce(2), 1]),
    live(['user', link('anon')]),
  ],
  'a value of a merged person behind a live first touch': [
    userAndAnon,
    job('a', ['anon', set(1)]),
    job('b', ['user', set(2), 5]),
    live(['user', setOnce(3)], ['user', link('anon')]),
  ],
  'a value of the merging job behind one of the merged person': [
    userAndAnon,
    job('a', ['anon', set(1), 5]),
    job('b', ['user', { ...link('anon'), ...setOnce(2) }, 3]),
  ],
}

const both = (k: number, atDay: number): Sent[] => [
  ['a', { ...set(k), $set_once: { once: k } }, atDay],
  ['a', group({ k }), atDay],
]
const liveSubjects = live(['a'], ['a', group({ live: 1 })])
const days: Cases = {
  'imports without a job after a job': [liveSubjects, job('a', ...both(1, 3)), day(0, ...both(2, 5))],
  'imports without a job before a job': [liveSubjects, send('a', ...both(1, 3)), day(0, ...both(2, 5)), publish('a')],
  'imports without a job on two days': [liveSubjects, day(0, ...both(2, 5)), day(1, ...both(1, 3))],
  'imports without a job that only a job set once': [
    liveSubjects,
    day(0, ['a', set(2), 5]),
    job('a', ['a', setOnce(1), 3]),
  ],
  'imports without a job between those of a job': [
    liveSubjects,
    day(0, ...both(1, 3)),
    job('a', ...both(2, 5), ...both(3, 2)),
  ],
  'imports without a job that blocked a live first touch': [
    liveSubjects,
    day(0, ...both(1, 3)),
    live(['a', setOnce('live')]),
  ],
  'imports without a job of persons and groups that only a job has, too': [
    send('a', ...both(1, 3)),
    day(0, ...both(2, 5)),
    publish('a'),
  ],
  'an import without a job that was too large': [day(0, ['a', set('x'.repeat(700_000))])],
  'imports without a job of a group that a live event describes': [day(0, ...both(1, 3)), live(['a', group({})])],
}

export function undoneJobsContract(engine: string, open: OpenSqlState): void {
  for (const [what, cases] of Object.entries({ links, values, times, removals, merged, days }))
    describe(`undoing import jobs on ${engine} leaves everything as if they had never been sent: ${what}`, () => {
      for (const [name, steps] of Object.entries(cases))
        it(
          name,
          inWorlds(open, async newWorld => {
            const history = steps.flat()
            const jobs = new Set(
              history.flatMap(step => ('publish' in step ? step.publish : 'day' in step ? step.day : [])),
            )
            for (const step of history) if ('undo' in step) jobs.delete(step.undo)
            await assertAsIfNeverSent(newWorld, history, [...permutations([...jobs])])
          }),
        )
    })
}

function* permutations(items: readonly string[]): Generator<readonly string[]> {
  if (items.length === 0) yield []
  for (const item of items) for (const rest of permutations(items.filter(each => each !== item))) yield [item, ...rest]
}
