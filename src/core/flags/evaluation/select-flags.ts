// Selects the flags that take part in one evaluation: those for the caller's runtime and contexts, limited to the keys
// that it names.
// Source: docs/wire/evaluation.md 5.1, 5.14.

import { isSurveyFlagKey } from '../../surveys/survey-flags.ts'
import type { CompiledFlag } from './compile-flag.ts'
import type { CompiledProject } from './compile-project.ts'
import { type FlagNeeds, mergeFlagNeeds } from './flag-needs.ts'

export interface FlagSelection {
  /** Null for all flags. */
  readonly flagKeys: readonly string[] | null
  /** Empty when the caller named no context; then no flag is left out because of its contexts. */
  readonly contexts: readonly string[]
  /** Used only when the project has flags that are for clients only or for servers only. */
  readonly runtime: RequestSource
  readonly surveyFlagsOnly: boolean
}

/** What shows whether a request comes from a client or a server. */
export interface RequestSource {
  /** `evaluation_runtime` of the body, as sent. */
  readonly declared: string | null
  readonly userAgent: string
  /** Whether `origin`, `referer`, `sec-fetch-mode` or `sec-fetch-site` was sent. */
  readonly hasBrowserHeader: boolean
}

export type RequestRuntime = 'client' | 'server' | 'all' | 'unknown'

const serverLibraries = ['python', 'ruby', 'php', 'java', 'go', 'node', 'dotnet', 'elixir', 'rs', 'server']
const clientLibraries = ['js', 'android', 'ios', 'react-native', 'flutter']

export function detectRequestRuntime(source: RequestSource): RequestRuntime {
  if (source.declared !== null) {
    const declared = source.declared.toLowerCase()
    return declared === 'client' || declared === 'server' ? declared : 'all'
  }
  const { userAgent } = source
  const library = /^posthog-([a-z-]+)\//i.exec(userAgent)?.[1]?.toLowerCase()
  if (library !== undefined && serverLibraries.includes(library)) return 'server'
  if (library !== undefined && clientLibraries.includes(library)) return 'client'
  if (/Mozilla\/|Chrome\/|Safari\/|Firefox\/|Edge\//.test(userAgent)) return 'client'
  if (/python-requests\/|curl\//.test(userAgent)) return 'server'
  return source.hasBrowserHeader ? 'client' : 'unknown'
}

/** Whether each flag takes part, by position; null in the usual case that all do. */
export function selectFlags(project: CompiledProject, selection: FlagSelection): readonly boolean[] | null {
  const byRuntime = project.hasRuntimeFlags
  const byContext = project.hasContextFlags && selection.contexts.length > 0
  if (!byRuntime && !byContext && !selection.surveyFlagsOnly && selection.flagKeys === null) return null
  const runtime = byRuntime ? detectRequestRuntime(selection.runtime) : 'all'
  const contexts = byContext ? new Set(selection.contexts) : noContexts
  const named = selection.flagKeys === null ? null : collectPositions(project, selection.flagKeys)
  return project.flags.map((flag, position) => {
    if (flag === undefined || (named !== null && !named.has(position))) return false
    if (selection.surveyFlagsOnly && !isSurveyFlagKey(flag.key)) return false
    return fitsRuntime(flag, runtime) && (!byContext || fitsContexts(flag, contexts))
  })
}

function fitsRuntime(flag: CompiledFlag, runtime: RequestRuntime): boolean {
  return flag.runtime === 'all' || runtime === 'all' || flag.runtime === runtime
}

const noContexts: ReadonlySet<string> = new Set()

function fitsContexts(flag: CompiledFlag, contexts: ReadonlySet<string>): boolean {
  return flag.contexts.length === 0 || flag.contexts.some(context => contexts.has(context))
}

/** Positions of the named flags and of the flags that they test, directly or not. Unknown keys are ignored. */
function collectPositions(project: CompiledProject, flagKeys: readonly string[]): Set<number> {
  const found = new Set<number>()
  const open: number[] = []
  for (const key of flagKeys) {
    const position = project.positionOfKey.get(key)
    if (position !== undefined) open.push(position)
  }
  for (let position = open.pop(); position !== undefined; position = open.pop()) {
    if (found.has(position)) continue
    found.add(position)
    for (const tested of project.dependencies[position]!) open.push(tested)
  }
  return found
}

/** What the selected flags together may read. */
export function findNeedsOfSelectedFlags(project: CompiledProject, selected: readonly boolean[] | null): FlagNeeds {
  if (selected === null) return project.needs
  const positions = project.order.filter(position => selected[position])
  return mergeFlagNeeds(positions.map(position => project.flags[position]!))
}
