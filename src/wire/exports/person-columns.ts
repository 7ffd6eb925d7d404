// The columns of exported persons. Names and values match the list, except that `distinct_ids` has all of them.

import { type PersonToEncode, personHead } from '#wire/management/persons/persons.ts'
import type { ExportColumn } from './export-column.ts'

export interface PersonRow {
  readonly head: ReturnType<typeof personHead>
  readonly createdAtMs: number
  readonly propertiesJson: string
}

export function personRow(person: PersonToEncode): PersonRow {
  return { head: personHead(person), createdAtMs: person.createdAtMs, propertiesJson: person.propertiesJson }
}

/** The cursor for resuming an export after this person. */
export function personCursor({ head }: PersonRow): string {
  return String(head.id)
}

export const personColumns: readonly ExportColumn<PersonRow>[] = [
  { name: 'cursor', kind: 'text', read: personCursor },
  { name: 'uuid', kind: 'text', read: ({ head }) => head.uuid },
  { name: 'name', kind: 'text', read: ({ head }) => head.name },
  { name: 'distinct_ids', kind: 'json', read: ({ head }) => JSON.stringify(head.distinct_ids) },
  { name: 'properties', kind: 'json', read: ({ propertiesJson }) => propertiesJson },
  { name: 'created_at', kind: 'instant', read: ({ createdAtMs }) => createdAtMs },
  { name: 'is_identified', kind: 'boolean', read: ({ head }) => head.is_identified },
  { name: 'version', kind: 'integer', read: ({ head }) => head.version },
  { name: 'distinct_id_versions', kind: 'json', read: ({ head }) => JSON.stringify(head.distinct_id_versions) },
  { name: 'flag_overrides', kind: 'json', read: ({ head }) => JSON.stringify(head.flag_overrides) },
]
