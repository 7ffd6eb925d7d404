// Lines that `publish` and `discard` print while the service works: each step once, and again every 30 s. Joining a million
// persons takes many minutes, in which silence would look like a standstill.

import { formatSpan } from '#importer/fetch/waiting.ts'

const againMs = 30_000

const stepLabels: Readonly<Record<string, string>> = {
  draining: 'waiting for events that are still being processed',
  links: 'linking persons',
  persons: 'merging person properties',
  groups: 'joining groups',
  person_properties: 'adding person properties to the events',
  'publish rows': 'making the events visible',
  'discard rows': 'removing the events',
  undo_merges: 'splitting persons',
  undo_persons: 'restoring persons',
  undo_groups: 'restoring groups',
  clearing: 'clearing up',
}

/** @returns a function to call with the current step after each poll of the service, which happens every second. */
export function reportSteps(
  how: string,
  { nowMs, say }: { readonly nowMs: () => number; readonly say: (line: string) => void },
): (step: string | null) => void {
  let current: string | null = null
  let [begunMs, reportedMs] = [0, 0]
  return step => {
    const atMs = nowMs()
    const isNew = step !== current
    current = step
    if (isNew) begunMs = atMs
    else if (atMs - reportedMs < againMs) return
    if (step === null) return
    reportedMs = atMs
    const label = stepLabels[`${how} ${step}`] ?? stepLabels[step] ?? step
    say(isNew ? `${how}: ${label}` : `${how}: still ${label}, after ${formatSpan(atMs - begunMs)}`)
  }
}
