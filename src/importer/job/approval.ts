// Hashes of what the operator approved. Sending starts only if all of them still match.
// Source: docs/wire/import.md §2.1 (stage 5), §2.4 ("other mapping, other bytes, other target").

import type { JsonObject } from '#core/json.ts'
import { toCanonicalJson } from '../records/canonical-json.ts'
import { createStateAccessors } from './job-state.ts'
import { type Manifest, manifestFile } from './manifest.ts'
import { hashConversionSettings, type ImportPlan } from './plan.ts'
import { sha256Hex } from './sha256.ts'

/** What an approval covers, each with the name that users know. */
const coveredNames = {
  manifest: `the events (${manifestFile})`,
  mapping: 'the source or its configuration',
  target: 'the target',
  limits: 'the limits',
}
export type ApprovalHashes = Readonly<Record<keyof typeof coveredNames, string>>

export interface Approval {
  readonly approvedAt: string
  readonly hashes: ApprovalHashes
  /** Hash of `hashes`: identifies the approval to users and at the service. */
  readonly sha256: string
}

export function hashManifest(manifest: Manifest): string {
  return sha256Hex(JSON.stringify(manifest))
}

export interface ApprovedParts {
  readonly plan: ImportPlan
  readonly manifest: Manifest
}

/** @param target null is hashed too: "no target" is also something to approve. */
export function hashTarget(target: ImportPlan['target']): string {
  return sha256Hex(toCanonicalJson(target as unknown as JsonObject))
}

export function hashApprovedParts({ plan, manifest }: ApprovedParts): ApprovalHashes {
  return {
    manifest: hashManifest(manifest),
    mapping: hashConversionSettings(plan),
    target: hashTarget(plan.target),
    limits: sha256Hex(toCanonicalJson(plan.limits as unknown as JsonObject)),
  }
}

export function createApproval(parts: ApprovedParts, approvedAt: string): Approval {
  const hashes = hashApprovedParts(parts)
  const sha256 = sha256Hex(toCanonicalJson({ ...hashes }))
  return { approvedAt, hashes, sha256 }
}

/** @returns descriptions of what changed since the approval; empty when nothing did. */
export function listChangesSinceApproval({ hashes }: Approval, parts: ApprovedParts): readonly string[] {
  const now = hashApprovedParts(parts)
  const names = Object.keys(coveredNames) as (keyof ApprovalHashes)[]
  return names.filter(name => now[name] !== hashes[name]).map(name => coveredNames[name])
}

export const [readApproval, storeApproval] = createStateAccessors<Approval>('approval')
