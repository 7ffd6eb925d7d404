// Histories with import jobs. Undoing a job must leave everything as in a world where its events were never sent.

import assert from 'node:assert/strict'
import type { CapturedEvent } from '#core/events/captured-event.ts'
import { findTrafficOfLane } from '#core/events/log-stream.ts'
import type { ImportJob, ImportOptions } from '#core/imports/import-job.ts'
import type { JsonObject } from '#core/json.ts'
import { decodePropertyMarks } from '#core/persons/property-marks-text.ts'
import { utcDay } from '#core/usage.ts'
import type { ImportWorld } from '../../support/world/import-world.ts'
import { isAboutUndoing } from './random-acts.ts'

/** What happens next. Jobs have names. */
export type Step =
  | { readonly live: readonly CapturedEvent[] }
  | { readonly send: string; readonly events: readonly CapturedEvent[]; readonly options?: Partial<ImportOptions> }
  | { readonly publish: string }
  /** Imports without a job, of one UTC day: `day` is the name of that day's implicit job. */
  | { readonly day: string; readonly events: readonly CapturedEvent[] }
  | { readonly undo: string }
  /** Gives the person of a distinct id flag assignments. */
  | { readonly assign: string; readonly hashKeys: Record<string, string> }

/** The maximum number of events in a chunk. */
const chunkSize = 5

function jobNameOf(step: Step): string | undefined {
  if ('send' in step) return step.send
  if ('publish' in step) return step.publish
  return 'day' in step ? step.day : undefined
}

/** @param without jobs that are created, but get no events, and are not published. */
async function play(
  world: ImportWorld,
  history: readonly Step[],
  without: ReadonlySet<string>,
): Promise<ReadonlyMap<string, ImportJob>> {
  const { management, clock } = world
  const jobs = new Map<string, ImportJob>()
  for (const step of history) {
    const name = jobNameOf(step)
    if (name === undefined || jobs.has(name)) continue
    if ('day' in step) {
      await management.createImplicitJob(1, utcDay(step.events[0]?.capturedAtMs ?? 0), clock.nowMs())
      jobs.set(name, (await management.listImportJobs(1, { limit: 1, offset: 0 })).jobs[0]!)
    } else jobs.set(name, await world.createJob('options' in step ? step.options : {}))
  }
  for (const step of history) {
    const name = jobNameOf(step)
    if (name !== undefined && without.has(name)) continue
    if ('live' in step) await applyAll(world, step.live)
    else if ('send' in step) {
      const importJobId = jobs.get(step.send)!.id
      await applyAll(
        world,
        step.events.map(event => ({ ...event, importJobId })),
      )
    } else if ('publish' in step) await world.publish(jobs.get(step.publish)!)
    else if ('day' in step) await applyAll(world, step.events)
    else if ('undo' in step) {
      if (!without.has(step.undo)) await discard(world, jobs.get(step.undo)!)
    } else await world.assign(step.assign, step.hashKeys)
  }
  return jobs
}

/** Everything is undone: at most a group type stays. */
async function discard(world: ImportWorld, job: ImportJob): Promise<void> {
  await world.discard(job)
  const { 'undo_left:group_type_is_used': _isUsed, ...notes } = await world.notes(job)
  assert.deepEqual(Object.keys(notes).filter(isAboutUndoing), [], `notes of job ${job.id}`)
}

/** In chunks, each with events of one kind of traffic. */
async function applyAll(world: ImportWorld, events: readonly CapturedEvent[]): Promise<void> {
  for (let from = 0; from < events.length; ) {
    const traffic = findTrafficOfLane(events[from]!.lane)
    let end = from + 1
    while (end < events.length && end - from < chunkSize && findTrafficOfLane(events[end]!.lane) === traffic) end++
    await world.apply(...events.slice(from, end))
    from = end
  }
}

/**
 * Plays a history once per order, undoes its jobs in that order, and compares everything after each undo. If the history has
 * undos, uuids are not compared: a person that an event creates afterwards may have the uuid of another of its ids.
 * @param orders names of jobs.
 */
export async function assertAsIfNeverSent(
  newWorld: () => Promise<ImportWorld>,
  history: readonly Step[],
  orders: readonly (readonly string[])[],
): Promise<void> {
  const models = new Map<string, ReturnType<typeof shownBy>>()
  const undoneBefore = history.flatMap(step => ('undo' in step ? step.undo : []))
  const show = undoneBefore.length === 0 ? shownBy : shownWithoutUuids
  for (const order of orders) {
    const world = await newWorld()
    const jobs = await play(world, history, new Set())
    for (const [place, name] of order.entries()) {
      const undone = order.slice(0, place + 1)
      await discard(world, jobs.get(name)!)
      const key = undone.toSorted().join()
      if (!models.has(key)) models.set(key, showWithout(new Set([...undoneBefore, ...undone])))
      assert.deepEqual(await show(world), await models.get(key), `after undoing ${undone}`)
    }
  }

  async function showWithout(undone: ReadonlySet<string>) {
    const model = await newWorld()
    await play(model, history, undone)
    return show(model)
  }
}

async function shownWithoutUuids(world: ImportWorld): ReturnType<typeof shownBy> {
  const { persons, personOfRows, ...shown } = await shownBy(world)
  const idsOf = new Map(persons.map(({ uuid, ids }) => [uuid, ids]))
  return {
    ...shown,
    persons: persons.map(person => ({ ...person, uuid: '' })).sort((a, b) => (a.ids < b.ids ? -1 : 1)),
    personOfRows: new Map(Array.from(personOfRows, ([row, uuid]) => [row, idsOf.get(uuid) ?? uuid])),
  }
}

/**
 * Groups have the names of their types: an undone job may have taken an index first. A type without groups is omitted, since
 * imports without a job leave theirs. The order of properties is not compared.
 */
export async function shownBy(world: ImportWorld) {
  const { persons, groups, groupTypes, ...stored } = await world.stored()
  const names = new Map(groupTypes.map(row => [row.group_type_index, row.group_type]))
  return {
    ...stored,
    persons: persons.map(({ properties, property_marks, ...person }) => ({
      ...person,
      ...profileOf(properties, property_marks),
    })),
    groups: new Map(
      groups.map(({ group_type_index, group_key, group_properties, property_marks, ...group }) => [
        `${names.get(group_type_index)} ${group_key}`,
        { ...group, ...profileOf(group_properties, property_marks) },
      ]),
    ),
    assignments: await world.assignments(),
    personOfRows: world.personOfRows(),
  }
}

function profileOf(properties: unknown, marks: unknown) {
  return { properties: JSON.parse(String(properties)) as JsonObject, marks: decodePropertyMarks(String(marks)) }
}
