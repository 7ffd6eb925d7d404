// Undo records of subjects as text. Properties keep their number literals; marks are stored as in their own column.

import type { SubjectKind, UndoRecord } from '#core/imports/import-changes.ts'
import { type JsonObject, parseJson } from '#core/json.ts'
import type { PropertyMarks } from '#core/persons/person.ts'
import { decodeMarks, encodeMarks } from '#core/persons/property-marks-text.ts'
import { PortError } from '#ports/port-error.ts'

type Value = UndoRecord['before']

export function encodeUndoValue(value: Value): string {
  return JSON.stringify(hasMarks(value) ? { ...value, marks: encodeMarks(value.marks) } : value)
}

/** @throws PortError `corrupt` for text that is not JSON. */
export function parseUndoRecord(row: {
  readonly import_job_id: number
  readonly kind: string
  readonly subject: string
  readonly project_id: number
  readonly before_image: string
  readonly after_image: string
}): UndoRecord {
  return {
    importJobId: Number(row.import_job_id),
    projectId: Number(row.project_id),
    kind: row.kind as SubjectKind,
    subject: row.subject,
    before: parseUndoValue(row.before_image),
    after: parseUndoValue(row.after_image),
  } as UndoRecord
}

function parseUndoValue(text: string): Value {
  try {
    const value = parseJson(text) as JsonObject | null
    return (typeof value?.marks === 'string'
      ? { ...value, marks: decodeMarks(value.marks) }
      : value) as unknown as Value
  } catch (cause) {
    throw new PortError('state', 'corrupt', cause)
  }
}

function hasMarks(value: Value): value is Extract<Value, { readonly marks: PropertyMarks }> {
  return value !== null && 'marks' in value
}
