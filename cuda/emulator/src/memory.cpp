// The memory of the device: pieces of the host's, far from each other. An address is never
// given out twice, so that what was freed is found as much as what lies behind an end.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#include "memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>

#include "device.hpp"

namespace emulator {

namespace {

constexpr uint64_t page = 4096, distance = 1 << 20, chunk = 4 << 20;
constexpr uint64_t rounding = 512; // of the driver's allocations

uint64_t up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

} // namespace

Memory &memory() {
	static Memory *m = new Memory; // threads may outlive static objects
	return *m;
}

Memory::Memory() : most(device().memory) {
	// Addresses alone cost nothing. Where so many are not to be had, fewer will do.
	for (uint64_t bytes = 1ull << 45; bytes >= 1ull << 32 && !next; bytes /= 2) {
		void *p = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (p != MAP_FAILED) {
			next = up(reinterpret_cast<uint64_t>(p), distance);
			end = reinterpret_cast<uint64_t>(p) + bytes;
		}
	}
	pattern = memfd_create("poison", MFD_CLOEXEC);
	if (pattern >= 0) {
		std::string bytes(chunk, char(poison));
		if (write(pattern, bytes.data(), bytes.size()) != ssize_t(chunk)) {
			close(pattern);
			pattern = -1;
		}
	}
}

// Poison costs memory only where it is written over: large pieces show the pages of a file, each
// of which becomes their own with the first write.
void Memory::poisonAll(uint64_t at, uint64_t bytes) {
	uint64_t done = 0;
	if (pattern >= 0)
		for (; bytes - done >= chunk; done += chunk)
			if (mmap(reinterpret_cast<void *>(at + done), chunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, pattern, 0) == MAP_FAILED)
				break;
	memset(reinterpret_cast<void *>(at + done), poison, bytes - done);
}

uint64_t Memory::allocate(uint64_t bytes, const void *owner, bool host) {
	std::unique_lock lock(guard);
	uint64_t mapped = up(bytes, page);
	if (bytes == 0 || bytes > 1ull << 44 || (!host && up(bytes, rounding) > most - used) || next + mapped + 2 * distance > end)
		return 0;
	uint64_t at = next;
	if (mmap(reinterpret_cast<void *>(at), mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
		return 0;
	next = up(at + mapped + distance, distance);
	poisonAll(at, mapped);
	pieces[at] = {bytes, mapped, owner, host};
	if (!host)
		used += up(bytes, rounding);
	return at;
}

void Memory::forget(std::map<uint64_t, Piece>::iterator p) {
	mmap(reinterpret_cast<void *>(p->first), p->second.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	if (!p->second.host)
		used -= up(p->second.bytes, rounding);
	pieces.erase(p);
}

bool Memory::release(uint64_t address, bool host) {
	std::unique_lock lock(guard);
	auto p = pieces.find(address);
	if (p == pieces.end() || p->second.host != host)
		return false;
	forget(p);
	return true;
}

void Memory::releaseAll(const void *owner) {
	std::unique_lock lock(guard);
	for (auto p = pieces.begin(); p != pieces.end();) {
		auto after = std::next(p);
		if (p->second.owner == owner)
			forget(p);
		p = after;
	}
}

bool Memory::find(uint64_t address, uint64_t bytes, Range &r) const {
	std::shared_lock lock(guard);
	auto p = pieces.upper_bound(address);
	if (p == pieces.begin())
		return false;
	--p;
	r = {p->first, p->first + p->second.bytes};
	return address < r.end && bytes <= r.end - address;
}

bool Memory::isHost(uint64_t address) const {
	std::shared_lock lock(guard);
	auto p = pieces.upper_bound(address);
	return p != pieces.begin() && (--p, address < p->first + p->second.bytes) && p->second.host;
}

std::string Memory::describe(uint64_t address) const {
	std::shared_lock lock(guard);
	char text[160];
	auto p = pieces.upper_bound(address);
	if (p == pieces.begin()) {
		snprintf(text, sizeof text, "at %#llx, before all that is allocated", (unsigned long long)address);
		return text;
	}
	--p;
	uint64_t offset = address - p->first, bytes = p->second.bytes;
	if (offset < bytes)
		snprintf(text, sizeof text, "at %#llx, at byte %llu of an allocation of %llu, across its end", (unsigned long long)address, (unsigned long long)offset,
		         (unsigned long long)bytes);
	else
		snprintf(text, sizeof text, "at %#llx, %llu bytes behind the end of an allocation of %llu bytes at %#llx, or in memory that was freed", (unsigned long long)address,
		         (unsigned long long)(offset - bytes), (unsigned long long)bytes, (unsigned long long)p->first);
	return text;
}

uint64_t Memory::free() const {
	std::shared_lock lock(guard);
	return most - used;
}

} // namespace emulator
