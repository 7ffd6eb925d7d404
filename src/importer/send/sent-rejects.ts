// `rejects/<part>.sent.jsonl`: the events refused while sending. Lines count once the checkpoint includes their length; bytes
// after that, left by a crash, are cut off before the round is sent again. Source: docs/wire/import.md §2.6.

import { closeSync, fsyncSync, ftruncateSync, mkdirSync, openSync, statSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { type JobFolder, parseObject } from '../job/job-folder.ts'
import { JobStopped } from '../job/job-paused.ts'
import { openNewFile, ownFile } from '../read/own-files.ts'
import { matchesSchema, Type } from '../records/file-schema.ts'
import {
  createRejectLineFor,
  nameSentRejectsFile,
  type RejectLine,
  readRejectTexts,
  rejectLineSchema,
} from '../stages/reject-files.ts'
import { checkpointFile, type PartProgress } from './checkpoint.ts'
import type { RefusedEvent } from './deliver-batch.ts'

const sentRejectSchema = Type.Object({ ...rejectLineSchema.properties, uuid: Type.String() })

/** The uuid identifies the refused event, since a record may yield several. */
export type SentReject = RejectLine & { readonly uuid: string }

/**
 * @returns the new length of the file.
 * @throws JobStopped if the file is shorter than the checkpoint says.
 */
export function appendRejects(
  folder: JobFolder,
  part: string,
  lengthBefore: number,
  adapter: string,
  refused: readonly RefusedEvent[],
): number {
  if (refused.length === 0) return lengthBefore
  const path = nameSentRejectsFile(folder, part)
  checkLength(path, lengthBefore)
  mkdirSync(dirname(path), { recursive: true })
  const bytes = Buffer.from(refused.map(each => `${JSON.stringify(createSentReject(part, adapter, each))}\n`).join(''))
  const file = lengthBefore === 0 ? openNewFile(path) : openSync(path, ownFile.change)
  try {
    ftruncateSync(file, lengthBefore)
    for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at, bytes.length - at, lengthBefore + at)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  return lengthBefore + bytes.length
}

/**
 * Yields the refused events that the checkpoint includes, each with its line. Safe while another process sends.
 * @throws JobStopped for a damaged file.
 */
export async function* readSentRejects(
  folder: JobFolder,
  { id, rejects_bytes }: Pick<PartProgress, 'id' | 'rejects_bytes'>,
): AsyncGenerator<{ readonly text: string; readonly reject: SentReject }> {
  if (rejects_bytes === 0) return
  const path = nameSentRejectsFile(folder, id)
  checkLength(path, rejects_bytes)
  for await (const text of readRejectTexts(path, rejects_bytes)) yield { text, reject: parseReject(path, text) }
}

/** Writing past the end would fill the gap with zeros. */
function checkLength(path: string, bytes: number): void {
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) < bytes) throw createDamageStop(path)
}

function parseReject(path: string, text: string): SentReject {
  const value = parseObject(text)
  if (!matchesSchema(sentRejectSchema, value)) throw createDamageStop(path)
  return value
}

function createDamageStop(path: string): JobStopped {
  return new JobStopped(
    `${path} is damaged. Restore it from a copy, or delete ${checkpointFile} and run again: everything is sent again, ` +
      'and the service stores each event only once',
  )
}

function createSentReject(part: string, adapter: string, { outgoing, ...refusal }: RefusedEvent): SentReject {
  return { ...createRejectLineFor(part, adapter, outgoing.outcome, refusal), uuid: outgoing.event.uuid }
}
