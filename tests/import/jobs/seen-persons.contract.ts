// The persons that the private API shows with a pending job: as they are once it is published, except for its links.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { parseJson } from '#core/json.ts'
import type { PersonInCohorts } from '#ports/state/cohort-store.ts'
import { listPersonsWithJob } from '#services/imports/persons-with-job.ts'
import type { OpenSqlState } from '../../support/state.ts'
import { importWorld } from '../../support/world/import-world.ts'
import { acts, applyAll, imported, live } from './random-acts.ts'

export function seenPersonsContract(engine: string, open: OpenSqlState, numRuns: number): void {
  describe(`persons shown with a pending import job on ${engine}`, () => {
    const withoutLinks = acts.map(all => all.filter(({ name }) => name !== '$identify'))
    const options = fc.record({ overwritesPersons: fc.boolean(), backdatesFirstTouch: fc.boolean() })

    it('are the same as the project’s persons once the job is published', async t => {
      await fc.assert(
        fc.asyncProperty(acts, withoutLinks, withoutLinks, options, async (lives, earlier, imports, chosen) => {
          const world = await importWorld(t, open)
          const { management } = world
          const [first, other, job] = [await world.createJob(), await world.createJob(), await world.createJob(chosen)]
          await applyAll(world, earlier.map(imported(first.id)))
          await applyAll(world, lives.map(live))
          await world.publish(first)
          await applyAll(world, imports.map(imported(job.id)))
          await applyAll(world, earlier.map(imported(other.id)))
          const project = (await management.findProject(1))!
          const before = await world.stored()
          const seen: PersonInCohorts[] = []
          for (let belowId: number | null | undefined; belowId !== null; ) {
            const page = { ...(belowId !== undefined && { belowId }), limit: 2 }
            const { results, continueAfterId } = await listPersonsWithJob({ management }, project, job, page, [])
            assert.ok(continueAfterId === null || continueAfterId < (belowId ?? Number.POSITIVE_INFINITY))
            seen.push(...results)
            belowId = continueAfterId
          }
          const order = seen.map(({ id }) => id)
          assert.deepEqual(
            order,
            [...new Set(order)].sort((a, b) => b - a),
          )
          assert.deepEqual(await world.stored(), before, 'nothing is written')
          await world.publish(job)
          const published = (await world.stored()).persons.map(person => ({
            ...{ uuid: person.uuid, ids: person.ids, createdAtMs: person.created_at },
            ...{ isIdentified: person.is_identified === 1, properties: parseJson(person.properties) },
          }))
          const shown = seen.map(person => ({
            ...{ uuid: person.uuid, ids: person.distinctIds.map(row => row.distinctId).join(' ') },
            ...{ createdAtMs: person.createdAtMs, isIdentified: person.isIdentified },
            properties: parseJson(person.propertiesJson),
          }))
          assert.deepEqual(new Map(shown.map(one => [one.uuid, one])), new Map(published.map(one => [one.uuid, one])))
        }),
        { numRuns },
      )
    })
  })
}
