// `rejects/<part>.sent.jsonl`: what only sending found to be wrong. Lines count once the checkpoint holds their length;
// what a crash left behind them is cut off before the round is sent again. Source: docs/wire/import.md §2.6.

import { closeSync, fsyncSync, ftruncateSync, mkdirSync, openSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import type { JobFolder } from '../job/job-folder.ts'
import { type RejectLine, rejectedSource } from '../stages/reject-files.ts'
import { fixOf } from '../stages/reject-fixes.ts'
import type { RefusedEvent } from './deliver-batch.ts'

/** @returns the length of the file with them. */
export function appendRejects(
  folder: JobFolder,
  part: string,
  lengthBefore: number,
  adapter: string,
  refused: readonly RefusedEvent[],
): number {
  if (refused.length === 0) return lengthBefore
  const path = folder.file('rejects', `${part}.sent.jsonl`)
  mkdirSync(dirname(path), { recursive: true })
  const bytes = Buffer.from(refused.map(each => `${JSON.stringify(lineOf(part, adapter, each))}\n`).join(''))
  const file = openSync(path, lengthBefore === 0 ? 'w' : 'r+', 0o600)
  try {
    ftruncateSync(file, lengthBefore)
    for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at, bytes.length - at, lengthBefore + at)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  return lengthBefore + bytes.length
}

/** The uuid tells which event of a record it was. */
function lineOf(
  part: string,
  adapter: string,
  { outgoing, reason, field, detail }: RefusedEvent,
): RejectLine & { readonly uuid: string } {
  const { outcome, event } = outgoing
  return {
    part,
    ...outcome.raw,
    reason,
    field,
    detail,
    ...rejectedSource(outcome),
    adapter,
    fix: fixOf(reason),
    uuid: event.uuid,
  }
}
