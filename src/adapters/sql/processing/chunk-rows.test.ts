import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { GroupType } from '#core/groups/group.ts'
import { toStagingProjectId } from '#core/imports/import-job.ts'
import {
  addTextsOfLargePersons,
  countMappingsThatFit,
  groupIdsByProject,
  listWantedGroups,
  longestTextBytes,
  type MappedPersonRow,
  selectPersonIds,
  TextBudget,
  toMappedPersons,
  toPersonMappings,
} from './chunk-rows.ts'
import { type ChunkReads, type LoadedProjectRow, loadChunk, loadSynchronously } from './load-chunk.ts'

const mapped = (id: number, distinctId: string, over: Partial<MappedPersonRow> = {}): MappedPersonRow => ({
  ...{ id, distinct_id: distinctId, project_id: 1, uuid: `person ${id}`, mapping_version: 2, text_bytes: 10 },
  ...{ properties: '{"a":1.0}', property_marks: '[]', created_at: 5, is_identified: 1, version: 3, last_seen_at: 6 },
  ...over,
})
const withoutText = { properties: null, property_marks: null }

describe('the text budget of a load', () => {
  it('is divided equally among the rows, each of which has two texts', () => {
    for (const [bytesMax, taken, rowCount, share] of [
      [100, 0, 5, 10],
      [100, 0, 0, 50],
      [100, 0, 51, 0],
      [100, 40, 5, 6],
      [100, 100, 1, 0],
      [100, 101, 1, 0],
      [Number.POSITIVE_INFINITY, 9, 1, longestTextBytes],
    ] as const) {
      const budget = new TextBudget(bytesMax)
      budget.take(1, taken)
      assert.equal(budget.textBytesOfEach(rowCount), share)
      assert.equal(budget.isExceeded, taken > bytesMax)
    }
  })

  it('counts per project, and includes a fixed number of bytes for each further id of a person', () => {
    const budget = new TextBudget(1_000)
    for (const [projectId, bytes] of [
      [1, 5],
      [2, 7],
      [1, 1],
    ] as const)
      budget.take(projectId, bytes)
    assert.deepEqual(
      [budget.takenBytes, [...budget.bytesOf]],
      [
        13,
        [
          [1, 6],
          [2, 7],
        ],
      ],
    )
    assert.equal(countMappingsThatFit(budget), Math.floor((1_000 - 13) / 256))
    assert.equal(countMappingsThatFit(new TextBudget(Number.POSITIVE_INFINITY)), longestTextBytes)
  })
})

describe('the rows of a load', () => {
  it('contain each person once for all of its ids, and add large texts that were loaded separately', () => {
    const budget = new TextBudget(1_000)
    const rows = [
      mapped(8, 'a'),
      mapped(5, 'b', withoutText),
      mapped(8, 'c'),
      mapped(5, 'd', withoutText),
      mapped(3, 'e'),
    ]
    const found = toMappedPersons(rows, budget)
    assert.deepEqual([[...found.large.keys()], budget.takenBytes], [[5], 30])
    addTextsOfLargePersons(found, [{ id: 5, properties: '{"b":2}', property_marks: '[]' }])
    assert.deepEqual(
      found.mappings.map(({ distinctId, personUuid, version }) => [distinctId, personUuid, version]),
      [...'abcde'].map((id, index) => [id, `person ${rows[index]!.id}`, 2]),
    )
    const persons = [...found.persons.values()]
    assert.deepEqual(
      persons.map(({ uuid }) => uuid),
      ['person 8', 'person 3', 'person 5'],
    )
    assert.deepEqual(
      persons.map(({ properties }) => JSON.stringify(properties)),
      found.personPropertiesJson,
    )
    assert.deepEqual(selectPersonIds(found, undefined), [8, 3, 5])
    const merging = (...ids: string[]) => ids.map(distinctId => ({ projectId: 1, distinctId }))
    assert.deepEqual(selectPersonIds(found, merging('d', 'c', 'a', 'unknown')), [8, 5])
    assert.deepEqual(selectPersonIds(found, [{ projectId: 2, distinctId: 'a' }]), [])
    assert.deepEqual(toPersonMappings([{ person_id: 3, distinct_id: 'f', version: 0 }], found), [
      { projectId: 1, distinctId: 'f', personUuid: 'person 3', version: 0 },
    ])
  })

  it('are requested once per id and group, but not for groups whose type is missing or being deleted', () => {
    const ids = [
      [1, 'a'],
      [2, 'a'],
      [1, 'a'],
      [1, 'b'],
    ] as const
    assert.deepEqual(
      groupIdsByProject(ids.map(([projectId, distinctId]) => ({ projectId, distinctId }))),
      new Map([
        [1, new Set(['a', 'b'])],
        [2, new Set(['a'])],
      ]),
    )
    const group = (projectId: number, typeName: string, key: string) => ({ projectId, typeName, key })
    const types: GroupType[] = [
      { projectId: 1, name: 'team', index: 0 },
      { projectId: 1, name: 'org', index: 1, isBeingDeleted: true },
      { projectId: 2, name: 'team', index: 3 },
    ]
    const asked = [
      group(1, 'team', 'a'),
      group(2, 'team', 'a'),
      group(1, 'org', 'a'),
      group(1, 'team', 'a'),
      group(1, 'team', ''),
      group(1, 'new', 'a'),
    ]
    assert.deepEqual(
      listWantedGroups(asked, types).map(row => [row.project_id, row.group_type_index, row.group_key]),
      [
        [1, 0, 'a'],
        [1, 0, ''],
        [2, 3, 'a'],
      ],
    )
  })
})

describe('a load', () => {
  const project = {
    ...{ id: 1, uuid: 'u', name: 'n', api_token: 't', timezone: 'UTC', anonymize_ips: 0, geoip_enabled: 1 },
    ...{ property_matching_version: 2, quotas: '{}', client_settings: '{}', ingestion_settings: '{}', created_at: 0 },
    ...{ deleted: 0, revision: 1, import_undos: 0, erasures: 0, is_undone: 0, has_erased_ids: 0 },
  } satisfies LoadedProjectRow
  const subjects = { projectIds: [1, 1], distinctIds: [{ projectId: 1, distinctId: 'a' }], groups: [] }

  function reading(over: Partial<ChunkReads> = {}) {
    const asked: string[] = []
    const reads: ChunkReads = {
      ...{
        projects: () => [project],
        groupTypes: () => [],
        mappedPersons: () => [mapped(8, 'a')],
        personTexts: () => [],
      },
      ...{
        personMappings: () => [],
        personless: () => [],
        erasedIds: () => [],
        importJobs: () => [],
        generated: () => [],
      },
      ...{ groups: () => [], ...over },
    }
    const noted = Object.entries(reads).map(([name, read]) => [
      name,
      (...args: unknown[]) => {
        asked.push(`${name} ${JSON.stringify(args[0])}`)
        return (read as (...args: unknown[]) => unknown)(...args)
      },
    ])
    return { asked, reads: Object.fromEntries(noted) as ChunkReads }
  }

  it('is too large as soon as persons, their ids or groups have more text than it may hold', () => {
    const group = { project_id: 1, group_type_index: 0, group_key: 'k', created_at: 0, version: 1 }
    const texts = { text_bytes: 10, group_properties: '{}', property_marks: '[]' }
    const cases: [over: Partial<ChunkReads>, bytes: number][] = [
      [{}, 10],
      [{ personMappings: () => [{ person_id: 8, distinct_id: 'b', version: 0 }] }, 10 + 256],
      [{ groups: () => [{ ...group, ...texts }] }, 20],
      [{ mappedPersons: () => [] }, 0],
    ]
    for (const [over, bytes] of cases) {
      const fits = loadSynchronously(loadChunk(reading(over).reads, subjects, bytes))
      assert.equal(fits !== 'too_large' && fits.textBytes, bytes)
      if (bytes > 0) assert.equal(loadSynchronously(loadChunk(reading(over).reads, subjects, bytes - 1)), 'too_large')
    }
  })

  it('reads rare kinds of data only for projects that have such data', () => {
    const usual = reading()
    loadSynchronously(loadChunk(usual.reads, subjects, 100))
    const rare = ['erasedIds', 'importJobs', 'generated']
    assert.deepEqual(
      usual.asked.filter(name => rare.some(each => name.startsWith(each))),
      [],
    )
    assert.equal(usual.asked[0], 'projects [1]')
    const job = { id: 7, project_id: 1, state: 'pending', step: null, has_notes: 1 } as const
    const full = reading({
      projects: () => [{ ...project, import_undos: 2, is_undone: 1, erasures: 3, has_erased_ids: 1 }],
      importJobs: () => [{ ...job, options: '{"looksUpGeoip":true}' }],
      groupTypes: () => [{ project_id: 1, group_type: 'team', group_type_index: 0, removed: 0 }],
    })
    const loaded = loadSynchronously(
      loadChunk(
        full.reads,
        { ...subjects, importJobIds: [7], groups: [{ projectId: toStagingProjectId(7), typeName: 'team', key: 'k' }] },
        100,
      ),
    )
    assert.ok(loaded !== 'too_large')
    assert.deepEqual(loaded.importUndos, new Map([[1, { count: 2, isRunning: true }]]))
    assert.deepEqual(loaded.erasures, new Map([[1, 3]]))
    assert.deepEqual(loaded.importJobs, [
      { id: 7, projectId: 1, state: 'pending', step: null, hasNotes: true, looksUpGeoip: true },
    ])
    assert.ok(full.asked.some(name => name.startsWith('erasedIds')))
    // The staging overlay of a job has the types of its project.
    const key = { project_id: toStagingProjectId(7), group_type_index: 0, group_key: 'k' }
    assert.ok(full.asked.includes(`groups ${JSON.stringify([key])}`))
  })
})
