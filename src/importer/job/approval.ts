// `approval.json`: what a person signed off, as hashes. Sending begins only while all four agree.
// Source: docs/wire/import.md §2.1 (stage 5), §2.4 ("other mapping, other bytes, other target").

import Type from 'typebox'
import type { JsonObject } from '#core/json.ts'
import { canonicalJson } from '../records/canonical-json.ts'
import type { JobFolder } from './job-folder.ts'
import { type Manifest, manifestFile } from './manifest.ts'
import { type ImportPlan, mappingSha256 } from './plan.ts'
import { sha256Hex } from './sha256.ts'

export interface ApprovalHashes {
  readonly manifest: string
  readonly mapping: string
  readonly target: string
  readonly limits: string
}

export interface Approval {
  readonly v: 1
  readonly jobId: string
  readonly approvedAt: string
  readonly hashes: ApprovalHashes
  /** The hash of `hashes`, by which the checkpoint and the service know the approval. */
  readonly sha256: string
}

export const approvalFile = 'approval.json'

const approvalSchema = Type.Object({
  v: Type.Literal(1),
  jobId: Type.String(),
  approvedAt: Type.String(),
  hashes: Type.Object({
    manifest: Type.String(),
    mapping: Type.String(),
    target: Type.String(),
    limits: Type.String(),
  }),
  sha256: Type.String(),
})

export function manifestSha256(manifest: Manifest): string {
  return sha256Hex(JSON.stringify(manifest))
}

export function approvalHashes(plan: ImportPlan, manifest: Manifest): ApprovalHashes {
  return {
    manifest: manifestSha256(manifest),
    mapping: mappingSha256(plan),
    target: sha256Hex(canonicalJson(plan.target as unknown as JsonObject)),
    limits: sha256Hex(canonicalJson(plan.limits as unknown as JsonObject)),
  }
}

export function approve(plan: ImportPlan, manifest: Manifest, approvedAt: string): Approval {
  const hashes = approvalHashes(plan, manifest)
  const sha256 = sha256Hex(canonicalJson({ ...hashes }))
  return { v: 1, jobId: plan.jobId, approvedAt, hashes, sha256 }
}

const changedNames: Record<keyof ApprovalHashes, string> = {
  manifest: `the staged bytes (${manifestFile})`,
  mapping: 'the source or its configuration',
  target: 'the target',
  limits: 'the limits',
}

/** @returns in words, what is not as it was approved; empty when everything is. */
export function changesSince({ hashes }: Approval, plan: ImportPlan, manifest: Manifest): readonly string[] {
  const now = approvalHashes(plan, manifest)
  const names = Object.keys(changedNames) as (keyof ApprovalHashes)[]
  return names.filter(name => now[name] !== hashes[name]).map(name => changedNames[name])
}

export function readApproval(folder: JobFolder): Approval | null {
  return folder.readJson(approvalFile, approvalSchema)
}
