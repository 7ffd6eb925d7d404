// Jobs that wait for a thread, in turns of their senders: however many one sends, another's next job waits for one job of each
// sender and no more. Where the bound is reached, the sender with the most gives way. Senders that may be one and the same are a
// group: groups take turns and give way first, and inside a group its senders do.

export interface QueuedJob {
  /** Whose job it is: what one of them sends is not to delay another's. */
  readonly sender: string
  /** What the sender is a part of, such as the network that its address was handed out with; the sender alone when absent. */
  readonly group?: string
  readonly bytes: number
}

export interface FairQueueLimits {
  readonly jobCountMax: number
  readonly bytesMax: number
}

interface Share<Job> {
  readonly jobs: Job[]
  bytes: number
}

interface Group<Job> {
  /** By sender, in the order of their turns. A sender without jobs is not in here. */
  readonly shares: Map<string, Share<Job>>
  jobCount: number
  bytes: number
}

export class FairQueue<Job extends QueuedJob> {
  readonly #limits: FairQueueLimits
  /** In the order of their turns. A group without jobs is not in here. */
  readonly #groups = new Map<string, Group<Job>>()
  #jobCount = 0
  #bytes = 0

  constructor(limits: FairQueueLimits) {
    this.#limits = limits
  }

  get jobCount(): number {
    return this.#jobCount
  }

  /**
   * Queues a job, as the last of its sender's.
   * @returns the jobs that there is no room for: this one, or the last ones of a group that has more than its group would, or
   *   of a sender in its group that has more than its sender would.
   */
  push(job: Job): Job[] {
    const refused: Job[] = []
    while (!this.#hasRoomFor(job)) {
      const last = this.#lastOfLarger(job)
      if (last === undefined) return [...refused, job]
      this.remove(last)
      refused.push(last)
    }
    const groupName = groupOf(job)
    const group = this.#groups.get(groupName) ?? { shares: new Map<string, Share<Job>>(), jobCount: 0, bytes: 0 }
    const share = group.shares.get(job.sender) ?? { jobs: [], bytes: 0 }
    this.#groups.set(groupName, group)
    group.shares.set(job.sender, share)
    share.jobs.push(job)
    share.bytes += job.bytes
    group.jobCount++
    group.bytes += job.bytes
    this.#jobCount++
    this.#bytes += job.bytes
    return refused
  }

  /** The first job of the sender whose turn it is in the group whose turn it is. Both are the last ones after that. */
  shift(): Job | undefined {
    const next = this.#groups.entries().next()
    if (next.done === true) return undefined
    const [groupName, group] = next.value
    const [sender, share] = group.shares.entries().next().value!
    this.#groups.delete(groupName)
    this.#groups.set(groupName, group)
    group.shares.delete(sender)
    group.shares.set(sender, share)
    const job = share.jobs[0]!
    this.remove(job)
    return job
  }

  /** Takes a job out of the queue. @returns whether it was in there. */
  remove(job: Job): boolean {
    const group = this.#groups.get(groupOf(job))
    const share = group?.shares.get(job.sender)
    if (group === undefined || share === undefined) return false
    // Where the bound is reached it is the last one.
    const index = share.jobs.at(-1) === job ? share.jobs.length - 1 : share.jobs.indexOf(job)
    if (index === -1) return false
    share.jobs.splice(index, 1)
    share.bytes -= job.bytes
    group.jobCount--
    group.bytes -= job.bytes
    this.#jobCount--
    this.#bytes -= job.bytes
    if (share.jobs.length === 0) group.shares.delete(job.sender)
    if (group.jobCount === 0) this.#groups.delete(groupOf(job))
    return true
  }

  /** Empties the queue. */
  clear(): Job[] {
    const jobs: Job[] = []
    for (let job = this.shift(); job !== undefined; job = this.shift()) jobs.push(job)
    return jobs
  }

  #hasRoomFor({ bytes }: Job): boolean {
    return this.#jobCount < this.#limits.jobCountMax && this.#bytes + bytes <= this.#limits.bytesMax
  }

  /** The last job of whoever has more in the queue than the sender of a new job would have with it; undefined for nobody. */
  #lastOfLarger(job: Job): Job | undefined {
    const { sender, bytes } = job
    const own = this.#groups.get(groupOf(job))
    const ownWeight = this.#weight((own?.jobCount ?? 0) + 1, (own?.bytes ?? 0) + bytes)
    const [largest, weight] = this.#largest(this.#groups.values(), each => this.#weight(each.jobCount, each.bytes))
    const weightOfShare = (share: Share<Job>) => this.#weight(share.jobs.length, share.bytes)
    if (largest !== undefined && weight > ownWeight)
      return this.#largest(largest.shares.values(), weightOfShare)[0]?.jobs.at(-1)
    const ownShare = own?.shares.get(sender)
    const withIt = this.#weight((ownShare?.jobs.length ?? 0) + 1, (ownShare?.bytes ?? 0) + bytes)
    const [neighbour, neighboursWeight] = this.#largest(own?.shares.values() ?? [], weightOfShare)
    return neighboursWeight > withIt ? neighbour?.jobs.at(-1) : undefined
  }

  #largest<T>(candidates: Iterable<T>, weigh: (candidate: T) => number): [largest: T | undefined, weight: number] {
    let largest: [T | undefined, number] = [undefined, 0]
    for (const candidate of candidates) {
      const weight = weigh(candidate)
      if (weight > largest[1]) largest = [candidate, weight]
    }
    return largest
  }

  /** As a part of the queue. */
  #weight(jobCount: number, bytes: number): number {
    return Math.max(jobCount / this.#limits.jobCountMax, bytes / this.#limits.bytesMax)
  }
}

const groupOf = ({ sender, group = sender }: QueuedJob): string => group
