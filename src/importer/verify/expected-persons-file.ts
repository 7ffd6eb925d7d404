// `expected-persons.json`: the persons to compare after publishing. Verification, which reads all sent events anyway, writes
// it so that publishing need not read them again. It is valid only for exactly the events sent at that time; without it,
// publishing reads them. Source: docs/wire/import.md §2.10.

import { readFileSync } from 'node:fs'
import { parseJson } from '#core/json.ts'
import type { PropertyMarks } from '#core/persons/person.ts'
import type { JobFolder } from '../job/job-folder.ts'
import { sha256Hex } from '../job/sha256.ts'
import { jsonObject, matchesSchema, Type } from '../records/file-schema.ts'
import type { PartProgress } from '../send/checkpoint.ts'
import type { SentJob } from '../send/sent-events.ts'
import { createExpectedPerson, type ExpectedPerson } from './expected-person.ts'

export const expectedPersonsFile = 'expected-persons.json'
/** Above this, persons with very many properties are not worth the disk space. */
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

/** @param sent the job and its retries. */
export function storeExpectedPersons(
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
  const hash = JSON.stringify(hashSentJobs(sent))
  folder.write(expectedPersonsFile, `{"v":1,"sent_sha256":${hash},"persons":[${texts.join(',')}]}`)
}

/** @returns null if there is no file, if something else was sent, or if the file is damaged, since nothing depends on it. */
export function readExpectedPersons(folder: JobFolder, sent: readonly SentJob[]): ExpectedPerson[] | null {
  const kept = readJsonFile(folder.file(expectedPersonsFile))
  if (!matchesSchema(schema, kept) || kept.sent_sha256 !== hashSentJobs(sent)) return null
  return kept.persons.map(({ id, ids, properties, marks }) => ({
    ...createExpectedPerson(id),
    ids: new Set(ids),
    profile: { properties, marks },
  }))
}

/** @returns null if the file is missing or not JSON. */
function readJsonFile(path: string): unknown {
  try {
    return parseJson(readFileSync(path, 'utf8'))
  } catch (cause) {
    if (cause instanceof SyntaxError || (cause as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw cause
  }
}

/** Differs for any two states of sending: it covers the sent lines of each part and the refused events. */
function hashSentJobs(sent: readonly SentJob[]): string {
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
