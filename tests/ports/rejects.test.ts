import { describe } from 'node:test'
import { MemoryRejects } from '../support/memory-rejects.ts'
import { rejectsContract } from './rejects.contract.ts'

describe('rejects: memory', () => {
  const store = new MemoryRejects()
  let projectCount = 0
  rejectsContract(
    () => store,
    () => ++projectCount,
  )
})
