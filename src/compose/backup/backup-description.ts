// `backup.json`, the first file of each backup: what it contains, and how many rows it should have.

import Type, { type Static } from 'typebox'
import { Compile } from 'typebox/compile'
import { toPrintable } from '#core/printable.ts'
import { isTooOld } from '#ports/port-error.ts'

export const descriptionName = 'backup.json'

const count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })
const counts = Type.Record(Type.String({ pattern: '^[\\w-]{1,60}$' }), count, { additionalProperties: false })

export const backupFormat = 2

const descriptionSchema = Type.Object({
  format: Type.Literal(backupFormat),
  pennon: Type.String({ pattern: '^[\\w.+-]{1,40}$' }),
  createdAt: Type.String({ pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$' }),
  /** Number of the state's last migration; null if the state is in PostgreSQL, and therefore not in the backup. */
  schema: Type.Union([count, Type.Null()]),
  /** The worker's positions in the state, by log stream. */
  positions: counts,
  /** False if the events are in a ClickHouse server, and therefore not in the backup. */
  events: Type.Boolean(),
  /** Rows by table, including repeats that are not merged yet. */
  rows: Type.Object({ state: counts, events: counts }),
})

export type BackupDescription = Static<typeof descriptionSchema>

const validator = Compile(descriptionSchema)

export function encodeBackupDescription(description: BackupDescription): string {
  return `${JSON.stringify(description, null, 2)}\n`
}

/** @returns the description, or why the backup cannot be used, as the end of a sentence about it. */
export function decodeBackupDescription(text: string): BackupDescription | string {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return 'is not valid JSON'
  }
  if (validator.Check(value)) return value
  const { format, pennon } = (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>
  if (format === 1) return `${isTooOld}: restore it with that version`
  if (typeof format === 'number' && format !== backupFormat)
    return `has format ${format}, which this version cannot read; it was written by Pennon ${describeVersion(pennon)}`
  const place = validator.Errors(value)[0]?.instancePath ?? ''
  return place === '' ? 'is damaged' : `is damaged at ${toPrintable(place)}`
}

function describeVersion(value: unknown): string {
  return typeof value === 'string' ? toPrintable(value.slice(0, 40)) : 'of an unknown version'
}
