// A published job that is undone after live events, compared with a world that never had the job: the two differ only
// where a note says so, and every note has a cause among the live events.

import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import type { CapturedEvent } from '#core/events/captured-event.ts'
import type { JsonObject } from '#core/json.ts'
import type { OpenSqlState } from '../../support/state.ts'
import type { ImportWorld } from '../../support/world/import-world.ts'
import {
  type Act,
  acts,
  applyAll,
  assertRowsHaveTheirPersons,
  imported,
  inWorlds,
  isAboutUndoing,
  live,
} from './random-acts.ts'

interface Note {
  readonly reason: string
  readonly personId?: string
  readonly distinctIds?: readonly string[]
  readonly distinctId?: string
  readonly otherId?: string
  readonly key?: string
  readonly groupKey?: string
}

/** @param numRuns random worlds per test. */
export function replayModelContract(engine: string, open: OpenSqlState, numRuns: number): void {
  for (const hasEarlier of [false, true])
    it(`undoing an import job on ${engine}${hasEarlier ? ' after another one' : ''} leaves the state as without it, except for differences that are noted`, async () => {
      const lists = [acts, hasEarlier ? acts : fc.constant([]), acts, acts, acts] as const
      await fc.assert(
        fc.asyncProperty(
          ...lists,
          inWorlds(open, async (newWorld, before, earlier, during, meanwhile, later) => {
            const world = await newWorld()
            const [ofBefore, ofMeanwhile, ofLater] = [before, meanwhile, later].map((list, place) =>
              list.map((act, index) => live(act, 1_000 * place + index)),
            ) as [CapturedEvent[], CapturedEvent[], CapturedEvent[]]
            const ofEarlier = earlier.map(imported(0))
            const begin = async (of: ImportWorld) => {
              await applyAll(of, ofBefore)
              if (!hasEarlier) return
              const { id: importJobId, ...job } = await of.createJob()
              await applyAll(
                of,
                ofEarlier.map(event => ({ ...event, importJobId })),
              )
              await of.publish({ ...job, id: importJobId })
            }
            await begin(world)
            const job = await world.createJob()
            await applyAll(world, during.map(imported(job.id)))
            await world.publish(job)
            await applyAll(world, ofMeanwhile)
            await world.discard(job)
            const notes = await notesOf(world, job.id)

            const model = await newWorld()
            await begin(model)
            await applyAll(model, ofMeanwhile)
            const stored = async (of: ImportWorld) => (hasEarlier ? withoutSomeKeys(await of.stored()) : of.stored())
            assertSamePersons(await stored(world), await stored(model), notes, personlessIds([...earlier, ...during]))
            assertSameGroups(await stored(world), await stored(model), notes)
            const causes = [...before, ...earlier, ...meanwhile]
            for (const note of notes) assert.ok(hasCause(note, causes, meanwhile, notes), JSON.stringify(note))
            await assertRowsHaveTheirPersons(world)

            await applyAll(world, ofLater)
            await assertRowsHaveTheirPersons(world)
          }),
        ),
        { numRuns },
      )
    })

  for (const isSame of [false, true])
    it(`undoing one of several import jobs on ${engine}${isSame ? ' with the same export' : ''} leaves the results of the others`, async () => {
      const lists = fc.tuple(acts, acts, fc.option(acts, { freq: 1 }))
      await fc.assert(
        fc.asyncProperty(
          acts,
          lists,
          fc.nat({ max: 5 }),
          inWorlds(open, async (newWorld, before, [first, second, third], anyPlace) => {
            const ofBefore = before.map((act, index) => live(act, index))
            const own = (list: readonly Act[]) => list.map(imported(0))
            const ofFirst = own(first)
            const exported = isSame
              ? [ofFirst, ofFirst]
              : [ofFirst, own(second), ...(third === null ? [] : [own(third)])]
            const undone = anyPlace % exported.length
            const places = [...exported.keys()]
            const publish = async (world: ImportWorld, some: readonly number[]) => {
              await applyAll(world, ofBefore)
              const jobs = []
              for (const place of some) {
                const job = await world.createJob()
                await applyAll(
                  world,
                  exported[place]!.map(event => ({ ...event, importJobId: job.id })),
                )
                jobs.push(job)
              }
              for (const job of jobs) await world.publish(job)
              return jobs
            }
            const [world, model] = [await newWorld(), await newWorld()]
            const jobs = await publish(world, places)
            const job = jobs[undone]!
            await world.discard(job)
            await publish(
              model,
              places.filter(place => place !== undone),
            )
            const notes = await notesOf(world, job.id)
            const personless = personlessIds([...first, ...second, ...(third ?? [])])
            assertSamePersons(await world.stored(), await model.stored(), notes, personless)
            assertSameGroups(await world.stored(), await model.stored(), notes)
            await assertRowsHaveTheirPersons(world)
            if (exported.length > 2) return

            const untouched = await newWorld()
            await applyAll(untouched, ofBefore)
            await world.discard(jobs[1 - undone]!)
            assertSamePersons(await world.stored(), await untouched.stored(), [], new Set())
            assertSameGroups(await world.stored(), await untouched.stored(), [])
          }),
        ),
        { numRuns },
      )
    })
}

async function notesOf(world: ImportWorld, jobId: number): Promise<Note[]> {
  const notes = (await world.management.listImportNotes(jobId)).filter(({ reason }) => isAboutUndoing(reason))
  for (const { count, samples } of notes) assert.equal(count, samples.length)
  return notes.flatMap(({ reason, samples }) =>
    samples.map(details => ({ ...(details as Omit<Note, 'reason'>), reason: reason.replace('undo_left:', '') })),
  )
}

type Stored = Awaited<ReturnType<ImportWorld['stored']>>

/**
 * Creator ids differ because a live event creates no person that an import had created before, which shows after
 * merges. Keys whose change alone is not written differ because undoing does not replay such changes.
 */
function withoutSomeKeys({ persons, ...stored }: Stored): Stored {
  const without = (text: string) => {
    const { $creator_event_uuid: _creator, $os: _os, ...properties } = JSON.parse(text) as JsonObject
    return JSON.stringify(properties)
  }
  return { ...stored, persons: persons.map(person => ({ ...person, properties: without(person.properties) })) }
}

/**
 * A person that live events make of one of these ids and another one keeps the uuid under which personless rows are
 * stored.
 */
function personlessIds(acts: readonly Act[]): ReadonlySet<string> {
  return new Set(acts.flatMap(({ id, properties }) => (properties.$process_person_profile === false ? id : [])))
}

function assertSamePersons(
  actual: Stored,
  expected: Stored,
  notes: readonly Note[],
  personless: ReadonlySet<string>,
): void {
  const idsOf = (uuid: string | undefined) => actual.persons.find(person => person.uuid === uuid)?.ids.split(' ') ?? []
  const merges = notes.filter(({ reason }) => /merge_was|link_|values_stay/.test(reason))
  const anywhere = new Set(
    merges.flatMap(({ personId, distinctIds = [], distinctId, otherId }) => [
      ...idsOf(personId),
      ...distinctIds,
      ...[distinctId, otherId].filter(id => id !== undefined),
    ]),
  )
  // Persons that share an id with one of these, in either world, may differ.
  for (let size = -1; size !== anywhere.size; ) {
    size = anywhere.size
    for (const { ids } of [...actual.persons, ...expected.persons])
      if (ids.split(' ').some(id => anywhere.has(id))) for (const id of ids.split(' ')) anywhere.add(id)
  }
  const shown = ({ persons }: Stored) =>
    persons
      .filter(({ ids }) => !ids.split(' ').some(id => anywhere.has(id)))
      .toSorted((a, b) => (a.ids < b.ids ? -1 : 1))
  const theirs = shown(expected)
  const used = new Set(notes.flatMap(({ reason, personId }) => (reason === 'person_is_used' ? [personId] : [])))
  // A personless event uses an existing person, and creates none.
  const ours = shown(actual).filter(({ uuid, ids }) => !used.has(uuid) || theirs.some(person => person.ids === ids))
  assert.deepEqual(
    ours.map(({ ids }) => ids),
    theirs.map(({ ids }) => ids),
  )
  for (const [place, person] of ours.entries()) {
    const other = theirs[place]!
    const about = notes.filter(({ personId }) => personId === person.uuid)
    const isUsed = about.some(({ reason }) => reason === 'person_is_used')
    const left = new Set(about.flatMap(({ key }) => key ?? []))
    if (isUsed) left.add('$creator_event_uuid')
    const shownOf = ({ uuid, ids, properties, created_at, is_identified }: Stored['persons'][number]) => ({
      ...(!isUsed && !ids.split(' ').some(id => personless.has(id)) && { uuid }),
      ...(!isUsed && !about.some(({ reason }) => reason === 'created_at_was_merged') && { created_at }),
      is_identified,
      properties: Object.fromEntries(
        Object.entries(JSON.parse(properties) as JsonObject).filter(([key]) => !left.has(key)),
      ),
    })
    assert.deepEqual(shownOf(person), shownOf(other), person.ids)
  }
}

function assertSameGroups(actual: Stored, expected: Stored, notes: readonly Note[]): void {
  type Group = { group_type_index: number; group_key: string; group_properties: string; created_at: number }
  const shown = ({ groups, groupTypes }: Stored) =>
    (groups as unknown as Group[]).map(({ group_type_index, group_key, group_properties, created_at }) => {
      const about = notes.filter(({ groupKey }) => groupKey === group_key)
      const isUsed = about.some(({ reason }) => reason === 'group_is_used')
      const left = new Set(about.flatMap(({ key }) => key ?? []))
      const type = (groupTypes as { group_type: string; group_type_index: number }[]).find(
        each => each.group_type_index === group_type_index,
      )
      const properties = Object.entries(JSON.parse(group_properties) as JsonObject).filter(([key]) => !left.has(key))
      return {
        name: `${type?.group_type} ${group_key}`,
        properties: properties.toSorted(([a], [b]) => (a < b ? -1 : 1)),
        ...(!isUsed && { created_at }),
      }
    })
  const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1)
  assert.deepEqual(shown(actual).toSorted(byName), shown(expected).toSorted(byName))
}

/**
 * Whether live events can have caused the note. What stays with a person may also be values of ids that were split off.
 */
function hasCause(
  { reason, personId, distinctIds = [], distinctId, otherId, key }: Note,
  all: readonly Act[],
  meanwhile: readonly Act[],
  notes: readonly Note[],
): boolean {
  const splitOff = notes.filter(each => each.reason === 'values_stay_with_survivor' && each.personId === personId)
  const ids = new Set([...distinctIds, ...splitOff.flatMap(each => each.distinctIds ?? [])])
  const links = meanwhile.filter(({ name }) => name === '$identify')
  const writes = meanwhile.filter(
    ({ properties }) =>
      '$set' in properties || '$set_once' in properties || '$unset' in properties || '$group_set' in properties,
  )
  switch (reason) {
    case 'merge_was_built_on':
    case 'created_at_was_merged':
      return links.some(({ id, properties }) => id !== properties.$anon_distinct_id)
    case 'link_was_confirmed':
      return links.some(({ id, properties }) => ids.has(id) || ids.has(properties.$anon_distinct_id as string))
    case 'link_was_refused':
      return links.some(({ id, properties }) => id === distinctId && properties.$anon_distinct_id === otherId)
    case 'link_is_used':
      return all.some(({ id }) => ids.has(id))
    case 'values_stay_with_survivor':
      return writes.some(({ id }) => ids.has(id))
    case 'person_is_used':
      return meanwhile.some(({ id, properties }) => ids.has(id) || ids.has(properties.$anon_distinct_id as string))
    case 'property_was_written':
      // A merge writes the values of the other person.
      return links.length > 0 || writes.some(({ properties }) => namesOf(properties).has(key!))
    case 'group_is_used':
    case 'group_type_is_used':
      return meanwhile.some(({ name }) => name === '$groupidentify')
    default:
      return false
  }
}

/** The property names that an event writes. */
function namesOf({ $set, $set_once, $unset, $group_set }: JsonObject): ReadonlySet<string> {
  const maps = [$set, $set_once, $group_set].flatMap(map => Object.keys((map ?? {}) as JsonObject))
  return new Set([...maps, ...(($unset ?? []) as string[])])
}
