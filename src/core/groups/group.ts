// A group (`company` acme), and the group types of a project: at most five, each with the lowest free number from 0 to 4.

import type { PropertyBag } from '../json.ts'
import type { PropertyMarks } from '../persons/person.ts'

export interface Group {
  readonly projectId: number
  readonly typeIndex: number
  readonly key: string
  readonly properties: PropertyBag
  readonly marks: PropertyMarks
  readonly createdAtMs: number
  /** 1 when created, +1 with each change. */
  readonly version: number
}

export interface GroupType {
  readonly projectId: number
  readonly name: string
  readonly index: number
  /** The type was deleted and its groups are being deleted: its index is still taken, its name no longer resolves. */
  readonly isBeingDeleted?: true
}

export const groupTypeCountMax = 5
