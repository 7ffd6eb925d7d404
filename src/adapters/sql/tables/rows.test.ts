import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { cohortResource } from '#core/flags/definitions/cohort.ts'
import { flagResource } from '#core/flags/definitions/flag.ts'
import { parseJson } from '#core/json.ts'
import { personalKeyResource } from '#core/personal-key.ts'
import type { PropertyMark } from '#core/persons/person.ts'
import { encodePropertyMarks } from '#core/persons/property-marks-text.ts'
import { projectResource } from '#core/project.ts'
import type { Field, FieldKind, ItemOf, Resource, ResourceFields } from '#core/resource.ts'
import { resources } from '#core/resources/resources.ts'
import { toResourceItem, toResourceRow } from './resource-rows.ts'
import {
  parseLogEnds,
  parseStoredJson,
  parseStoredJsonObject,
  parseStoredProperties,
  toGroup,
  toGroupType,
  toPerson,
} from './rows.ts'

const large = 2 ** 53 - 1
// Number literals, any text and any key have to come back.
const json = parseJson(
  '{"a":[1.0,-0,12345678901234567890,null],"__proto__":{"\\u0000":"\\ud800"},"ü🏴":"\'\\\\\\""}',
) as never

/** PostgreSQL may hand out BIGINT as text, and no number below 2 is one here. */
function asHandedOut<Row extends object>(row: Row): Row {
  const entries = Object.entries(row).map(([name, value]) => [
    ...[name, typeof value === 'number' && value > 1 ? String(value) : value],
  ])
  return Object.fromEntries(entries) as Row
}

function assertComesBack<Value, Row extends object>(
  value: Value,
  toRow: (value: Value) => Row,
  of: (row: Row) => Value,
) {
  const row = toRow(value)
  assert.deepEqual(of(row), value)
  assert.deepEqual(of(asHandedOut(row)), value)
  assert.deepEqual(toRow(of(row)), row)
  for (const column of Object.values(row)) assert.ok(column === null || ['string', 'number'].includes(typeof column))
}

const declared: readonly Resource[] = [
  cohortResource,
  flagResource,
  projectResource,
  personalKeyResource,
  ...Object.values(resources),
]

function anItem(fields: ResourceFields, isSet: boolean): ItemOf<{ fields: ResourceFields }> {
  const valueOfKind: Readonly<Record<FieldKind, (field: Field) => unknown>> = {
    ...{ text: () => "'", uuid: () => 'u', integer: () => large, boolean: () => isSet, instant: () => large },
    ...{ object: () => json, members: () => json, group: ({ fields }) => anItem(fields, isSet) },
    ...{ texts: () => (isSet ? ['', '"'] : []), integers: () => (isSet ? [large] : []) },
    author: () => ({ id: null, label: '"' }),
  }
  const values = Object.entries(fields).map(([key, field]) => [
    key,
    field.isNullable && !isSet ? null : valueOfKind[field.kind](field),
  ])
  return Object.fromEntries(values)
}

describe('a definition stored as a row', () => {
  for (const isSet of [true, false])
    it(`is read back unchanged, ${isSet ? 'with everything set' : 'with nothing set'}`, () => {
      for (const resource of declared)
        assertComesBack(
          anItem(resource.fields, isSet),
          item => toResourceRow<Resource>(resource, item),
          row => toResourceItem<Resource>(resource, row),
        )
    })
})

describe('stored JSON', () => {
  const corrupt = { code: 'corrupt' }

  it('must be an object, and keeps its number literals', () => {
    assert.deepEqual(parseStoredJsonObject('{}'), {})
    assert.equal(
      JSON.stringify(parseStoredJsonObject('{"a":1.0,"b":9007199254740993}')),
      '{"a":1.0,"b":9007199254740993}',
    )
    assert.equal(JSON.stringify(parseStoredProperties('{"a":1.0}')), '{"a":1.0}')
    for (const text of ['', 'null', '[]', '1', '"{}"', '{', '{}x', 'undefined'])
      assert.throws(() => parseStoredJsonObject(text), corrupt, text)
    for (const text of ['', '{', 'undefined']) assert.throws(() => parseStoredJson(text), corrupt, text)
  })

  it('yields only the requested properties if it is long', () => {
    const long = JSON.stringify({ a: 1, b: 'x'.repeat(100_000), c: 3 })
    assert.equal(parseStoredProperties(long, () => new Set(['c', 'd'])).c, 3)
    assert.throws(() => parseStoredProperties(`${long.slice(0, -1)},`, () => new Set(['c'])), corrupt)
  })
})

describe('stored persons and groups', () => {
  const mark: PropertyMark = { kind: 'live_once', timestampMs: 5, uuid: 'u', importJobId: 0 }
  const row = { project_id: 9, created_at: large, version: 3, property_marks: encodePropertyMarks({ a: mark }) }
  const expected = { projectId: 9, properties: { a: 1 }, marks: { a: mark }, createdAtMs: large, version: 3 }

  it('are read together with the marks that say which properties an import has set', () => {
    const person = { ...row, uuid: 'u', properties: '{"a":1}', is_identified: 1, last_seen_at: 8 }
    const group = { ...row, group_type_index: 4, group_key: '', group_properties: '{"a":1}' }
    for (const read of [<R extends object>(row: R) => row, asHandedOut]) {
      assert.deepEqual(toPerson(read(person)), { ...expected, uuid: 'u', isIdentified: true, lastSeenAtMs: 8 })
      assert.deepEqual(toGroup(read(group)), { ...expected, typeIndex: 4, key: '' })
    }
    for (const property_marks of ['', '[', '[[1]]', '{"a":1}'])
      assert.throws(() => toPerson({ ...person, property_marks }), { code: 'corrupt' }, property_marks)
  })

  it('include whether a group type is being deleted', () => {
    const type = { project_id: 9, group_type: 'team', group_type_index: 0 }
    assert.deepEqual(toGroupType({ ...type, removed: 0 }), { projectId: 9, name: 'team', index: 0 })
    assert.deepEqual(toGroupType({ ...type, removed: 1 }), {
      ...{ projectId: 9, name: 'team', index: 0, isBeingDeleted: true },
    })
  })

  it('are erased up to the offset at which each log stream ended', () => {
    assert.deepEqual(parseLogEnds({ log_id: 'l', log_ends: '{"main":5}' }), { logId: 'l', endOffsets: { main: 5 } })
  })
})

describe('a stored project', () => {
  const row = {
    ...{ id: 7, uuid: 'u', name: 'n', api_token: 'phc_a', timezone: 'UTC', anonymize_ips: 0, geoip_enabled: 1 },
    ...{ property_matching_version: 1 as 1 | 2, quotas: '{}', created_at: 5, deleted: 0, revision: 1 },
    ...{ import_undos: 0, erasures: 0, client_settings: '{}', ingestion_settings: '{}' },
  }

  it('has defaults for fields that later versions added', () => {
    const { quotas, ingestion, propertyMatchingVersion, anonymizeIps, geoipEnabled } = toResourceItem(
      projectResource,
      row,
    )
    assert.deepEqual([propertyMatchingVersion, anonymizeIps, geoipEnabled], [1, false, true])
    const [quota] = Object.keys(quotas) as [keyof typeof quotas]
    const set = toResourceItem(projectResource, {
      ...row,
      quotas: JSON.stringify({ [quota]: 5 }),
      ingestion_settings: '{"groupTypesFrozen":true}',
    })
    assert.deepEqual(set.quotas, { ...quotas, [quota]: 5 })
    assert.deepEqual(set.ingestion, { ...ingestion, groupTypesFrozen: true })
    assert.equal(toResourceItem(projectResource, { ...row, property_matching_version: 2 }).propertyMatchingVersion, 2)
  })
})
