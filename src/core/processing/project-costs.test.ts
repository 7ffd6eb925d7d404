import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { PersonIdOverride, StoredEvent } from '../events/stored-event.ts'
import { addChunkCosts, findHeaviestProject, type ProjectCosts } from './project-costs.ts'

interface Cost {
  readonly projectId: number
  readonly eventCount?: number
  readonly sentLength?: number
  readonly personLength?: number
  readonly overrideCount?: number
  readonly loadedBytes?: number
  readonly groupLength?: number
}

function costsOf(...parts: readonly Cost[]): ProjectCosts {
  const costs: ProjectCosts = new Map()
  const rows = { events: [] as StoredEvent[], overrides: [] as PersonIdOverride[] }
  const textBytesOf = new Map<number, number>()
  const groupTextLengths = new Map<number, number>()
  for (const { projectId, eventCount = 1, sentLength = 100, personLength = 2, overrideCount = 0, ...more } of parts) {
    const texts = { propertiesJson: 'x'.repeat(sentLength), personPropertiesJson: 'x'.repeat(personLength) }
    for (let n = 0; n < eventCount; n++) rows.events.push({ projectId, ...texts } as StoredEvent)
    for (let n = 0; n < overrideCount; n++) rows.overrides.push({ projectId } as PersonIdOverride)
    textBytesOf.set(projectId, more.loadedBytes ?? 0)
    groupTextLengths.set(projectId, more.groupLength ?? 0)
  }
  const others = { pendingEvents: [], recordings: [], rejected: [], deduplicated: [], erasures: new Map() }
  addChunkCosts(costs, { textBytesOf }, { rows: { ...rows, ...others }, groupTextLengths })
  return costs
}

const mebibyte = 1024 * 1024

it('a project is expensive because of its persons, groups, loaded text, or merges', () => {
  const large: Record<string, Cost> = {
    persons: { projectId: 1, eventCount: 10, personLength: mebibyte / 2 },
    groups: { projectId: 1, eventCount: 10, groupLength: 5 * mebibyte },
    loaded: { projectId: 1, eventCount: 10, loadedBytes: 5 * mebibyte },
    merges: { projectId: 1, eventCount: 2, overrideCount: 2_400 },
  }
  for (const [what, cost] of Object.entries(large)) {
    const found = findHeaviestProject(costsOf({ projectId: 2, eventCount: 100 }, cost))
    assert.deepEqual(found, { projectId: 1, isCostly: true }, what)
  }
})

it('a project with many or large events fills much of a chunk, but does not count as expensive', () => {
  for (const cost of [
    { eventCount: 3_000, personLength: 4_000 },
    { eventCount: 10, sentLength: mebibyte / 2 },
  ])
    assert.deepEqual(findHeaviestProject(costsOf({ projectId: 1, ...cost })), { projectId: 1, isCostly: false })
})

it('no project counts as the main cause of cost if it caused only half of the cost, or if the cost is small', () => {
  const half = { eventCount: 10, personLength: mebibyte }
  assert.equal(findHeaviestProject(costsOf({ projectId: 1, ...half }, { projectId: 2, ...half })), null)
  assert.equal(findHeaviestProject(costsOf({ projectId: 1, personLength: mebibyte })), null)
})
