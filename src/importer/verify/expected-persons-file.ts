// `expected-persons.json`: what verifying, which reads everything that was sent, found of the persons that are compared
// after publishing, so that publishing need not read all of it once more. It counts only for exactly what was sent then;
// without it, publishing reads. Source: docs/wire/import.md §2.10.

import { readFileSync } from 'node:fs'
import { parseJson } from '#core/json.ts'
import type { PropertyMarks } from '#core/persons/person.ts'
import type { JobFolder } from '../job/job-folder.ts'
import { sha256Hex } from '../job/sha256.ts'
import { isOf, jsonObject, Type } from '../records/file-schema.ts'
import type { PartProgress } from '../send/checkpoint.ts'
import type { SentJob } from '../send/sent-events.ts'
import { type ExpectedPerson, newPerson } from './expected-person.ts'

export const expectedPersonsFile = 'expected-persons.json'
/** Persons of very many properties are not worth their space. */
const charsMax = 16 * 1_024 * 1_024

const schema = Type.Object({
  v: Type.Literal(1),
  sent_sha256: Type.String(),
  persons: Type.Array(
    Type.Object({
      id: Type.String(),
      ids: Type.Array(Type.String()),
      properties: jsonObject,
      marks: Type.Unsafe<PropertyMarks>(jsonObject),
    }),
  ),
})

/** @param sent the job, and what was repaired and sent again. */
export function keepExpectedPersons(
  folder: JobFolder,
  sent: readonly SentJob[],
  persons: readonly ExpectedPerson[],
): void {
  const texts: string[] = []
  let chars = 0
  for (const { id, ids, profile } of persons) {
    const { properties, marks } = profile
    const text = JSON.stringify({ id, ids: [...ids], properties, marks })
    chars += text.length
    if (chars > charsMax) {
      folder.remove(expectedPersonsFile)
      return
    }
    texts.push(text)
  }
  const hash = JSON.stringify(hashOfSent(sent))
  folder.write(expectedPersonsFile, `{"v":1,"sent_sha256":${hash},"persons":[${texts.join(',')}]}`)
}

/** @returns null where nothing is kept, or something else was sent; also for a damaged file, which nothing depends on. */
export function readExpectedPersons(folder: JobFolder, sent: readonly SentJob[]): ExpectedPerson[] | null {
  const kept = keptIn(folder.file(expectedPersonsFile))
  if (!isOf(schema, kept) || kept.sent_sha256 !== hashOfSent(sent)) return null
  return kept.persons.map(({ id, ids, properties, marks }) => ({
    ...newPerson(id),
    ids: new Set(ids),
    profile: { properties, marks },
  }))
}

/** Null for anything but JSON. */
function keptIn(path: string): unknown {
  try {
    return parseJson(readFileSync(path, 'utf8'))
  } catch (cause) {
    if (cause instanceof SyntaxError || (cause as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw cause
  }
}

/** Tells any two states of sending apart: which lines of which parts were taken, and which events were refused. */
function hashOfSent(sent: readonly SentJob[]): string {
  const progressOf = ({ id, sha256, committed, rejects_bytes }: PartProgress) => [
    ...[id, sha256, committed.line, rejects_bytes],
  ]
  return sha256Hex(
    JSON.stringify(
      sent.map(
        ({ checkpoint }) =>
          checkpoint && [
            ...[checkpoint.job_id, checkpoint.service_job_id, checkpoint.mapping_sha256],
            ...[checkpoint.identity.progress, ...checkpoint.parts].map(progressOf),
          ],
      ),
    ),
  )
}
