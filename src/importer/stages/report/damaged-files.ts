// Which files of an export are not whole. One that was cut off gives one reject however much of it is missing, so no share
// of rejects tells of it.

import type { Manifest } from '#importer/job/manifest.ts'
import type { ReadRecord } from '#importer/read/read-record.ts'
import type { RejectReason } from '#importer/records/imported-event.ts'

export interface DamagedFile {
  /** As in `RawPosition`. */
  readonly object: string
  /** How many records came before the damage, of the file and of those beside it in the same archive. */
  readonly records: number
  readonly line: number
  readonly why: string
}

/** Rejects that are said of a file and not of one of its records. */
const reasons: ReadonlySet<RejectReason> = new Set(['truncated_record', 'compressed_input'])
const details: Partial<Record<RejectReason, string>> = {
  truncated_record: 'it ends in the middle of a record',
  compressed_input: 'it cannot be unpacked',
}

/** @param records read of the file before. @returns null for a record like others. */
export function damageIn({ parsed, raw }: ReadRecord, records: number): Omit<DamagedFile, 'object'> | null {
  if (!('rejected' in parsed) || !reasons.has(parsed.rejected.reason)) return null
  const { reason, detail = details[reason]! } = parsed.rejected
  return { records, line: raw.line, why: detail }
}

export function damagedFiles({ objects }: Manifest): readonly DamagedFile[] {
  return objects.flatMap(({ object, damage }) => (damage === undefined ? [] : [{ object, ...damage }]))
}

export function damageText({ object, records, line, why }: DamagedFile): string {
  const read = records === 1 ? '1 record was read' : `${records.toLocaleString('en')} records were read`
  return `${object} is damaged in line ${line.toLocaleString('en')} (${why}): ${read}, and what follows is missing.`
}
