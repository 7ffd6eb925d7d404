// Finds incomplete files of an export. A truncated file gives a single reject however much of it is missing, so the share of
// rejects does not reveal it.

import type { Manifest } from '#importer/job/manifest.ts'
import type { ReadRecord } from '#importer/read/read-record.ts'
import type { RejectReason } from '#importer/records/imported-event.ts'

export interface DamagedFile {
  /** As in `RawPosition`. */
  readonly object: string
  /** How many records precede the damage, in the file and in others of the same archive. */
  readonly records: number
  readonly line: number
  readonly why: string
}

/** Reject reasons that concern a file rather than one of its records. */
const reasons: ReadonlySet<RejectReason> = new Set(['truncated_record', 'compressed_input'])
const details: Partial<Record<RejectReason, string>> = {
  truncated_record: 'it ends in the middle of a record',
  compressed_input: 'it cannot be decompressed',
}

/** @param records how many were read from the file before. @returns null for a normal record. */
export function findDamage({ parsed, raw }: ReadRecord, records: number): Omit<DamagedFile, 'object'> | null {
  if (!('rejected' in parsed) || !reasons.has(parsed.rejected.reason)) return null
  const { reason, detail = details[reason]! } = parsed.rejected
  return { records, line: raw.line, why: detail }
}

export function listDamagedFiles({ objects }: Manifest): readonly DamagedFile[] {
  return objects.flatMap(({ object, damage }) => (damage === undefined ? [] : [{ object, ...damage }]))
}

export function describeDamage({ object, records, line, why }: DamagedFile): string {
  const read = records === 1 ? '1 record was read' : `${records.toLocaleString('en')} records were read`
  return `${object} is damaged in line ${line.toLocaleString('en')} (${why}): ${read}, and what follows is missing.`
}
