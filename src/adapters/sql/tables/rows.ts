// Converts rows to values and back: only this file knows that a boolean is 0/1 and that properties are JSON text.
// Numbers pass through Number(), because a PostgreSQL driver may hand out BIGINT as text.

import type { Selectable } from 'kysely'
import type { Author } from '#core/author.ts'
import type { Group, GroupType } from '#core/groups/group.ts'
import { isJsonObject, type JsonObject, type JsonValue, parseJson } from '#core/json.ts'
import type { LogEnds } from '#core/persons/erasure.ts'
import type { Person, PropertyMarks } from '#core/persons/person.ts'
import type { PersonRepair, RepairReport, RepairRequest } from '#core/persons/person-repair.ts'
import { decodePropertyMarks } from '#core/persons/property-marks-text.ts'
import { parseWantedProperties } from '#core/pick-properties.ts'
import { PortError } from '#ports/port-error.ts'
import type { GroupTable, GroupTypeTable, PersonErasureTable, PersonRepairTable, PersonTable } from './schema.ts'

export function toJsonText(value: JsonValue | readonly string[]): string {
  return JSON.stringify(value)
}

/** @throws PortError `corrupt` for text that is not a JSON object, which we never write. */
export function parseStoredJsonObject(text: string): JsonObject {
  if (text === '{}') return {}
  const value = parseStoredJson(text)
  if (!isJsonObject(value)) throw new PortError('state', 'corrupt', new Error('stored JSON is not an object'))
  return value
}

/** Properties of a person or a group; from a long text only the wanted properties. @throws PortError `corrupt` */
export function parseStoredProperties(text: string, wanted?: () => ReadonlySet<string>): JsonObject {
  if (wanted === undefined) return parseStoredJsonObject(text)
  try {
    return parseWantedProperties(text, wanted)
  } catch (cause) {
    throw new PortError('state', 'corrupt', cause)
  }
}

/** @throws PortError `corrupt` for text that is not JSON. */
export function parseStoredJson(text: string): JsonValue {
  try {
    return parseJson(text)
  } catch (cause) {
    throw new PortError('state', 'corrupt', cause)
  }
}

export function toSqlBoolean(value: boolean): number {
  return value ? 1 : 0
}

/** @param text the value of an author column; null when there is no author. */
export function parseStoredAuthor(text: string | null): Author | null {
  return text === null ? null : (parseStoredJson(text) as unknown as Author)
}

export function toAuthorText(author: Author | null): string | null {
  return author === null ? null : JSON.stringify({ id: author.id, label: author.label, email: author.email })
}

export function toPerson(row: Omit<Selectable<PersonTable>, 'id'>): Person {
  return {
    projectId: Number(row.project_id),
    uuid: row.uuid,
    properties: parseStoredJsonObject(row.properties),
    marks: parseMarks(row.property_marks),
    createdAtMs: Number(row.created_at),
    isIdentified: row.is_identified === 1,
    version: Number(row.version),
    lastSeenAtMs: Number(row.last_seen_at),
  }
}

/** @throws PortError `corrupt` */
function parseMarks(text: string): PropertyMarks {
  try {
    return decodePropertyMarks(text)
  } catch (cause) {
    throw new PortError('state', 'corrupt', cause)
  }
}

export function toGroup(row: Selectable<GroupTable>): Group {
  return {
    projectId: Number(row.project_id),
    typeIndex: Number(row.group_type_index),
    key: row.group_key,
    properties: parseStoredJsonObject(row.group_properties),
    marks: parseMarks(row.property_marks),
    createdAtMs: Number(row.created_at),
    version: Number(row.version),
  }
}

export function toGroupType(row: Selectable<GroupTypeTable>): GroupType {
  const type = { projectId: Number(row.project_id), name: row.group_type, index: Number(row.group_type_index) }
  return row.removed === 1 ? { ...type, isBeingDeleted: true } : type
}

export function parseLogEnds(row: Pick<Selectable<PersonErasureTable>, 'log_id' | 'log_ends'>): LogEnds {
  return { logId: row.log_id, endOffsets: JSON.parse(row.log_ends) as LogEnds['endOffsets'] }
}

export function toPersonRepair(row: Selectable<PersonRepairTable>): PersonRepair {
  return {
    id: Number(row.id),
    projectId: Number(row.project_id),
    request: parseStoredJsonObject(row.request) as unknown as RepairRequest,
    requestedBy: parseStoredAuthor(row.requested_by),
    requestedAtMs: Number(row.requested_at),
    report: row.report === null ? null : (parseStoredJsonObject(row.report) as unknown as RepairReport),
    doneAtMs: row.done_at === null ? null : Number(row.done_at),
  }
}
