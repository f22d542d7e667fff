// Runs the blocks of launches on the threads of the host.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#include "launch.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <thread>

namespace emulator {

namespace {

// Threads that wait for work; the one that asks works too.
class Pool {
  public:
	Pool() {
		for (unsigned i = 1; i < settings().threads; i++)
			std::thread([this] { wait(); }).detach();
	}
	// Runs f on so many threads and waits for all.
	void run(unsigned n, const std::function<void()> &f) {
		{
			std::lock_guard lock(guard);
			work = &f;
			wanted = running = n - 1;
		}
		if (n > 1)
			more.notify_all();
		f();
		std::unique_lock lock(guard);
		running -= wanted; // those that have not begun need not
		wanted = 0;
		done.wait(lock, [this] { return running == 0; });
		work = nullptr;
	}

  private:
	std::mutex guard;
	std::condition_variable more, done;
	const std::function<void()> *work = nullptr;
	unsigned wanted = 0, running = 0;

	void wait() {
		std::unique_lock lock(guard);
		for (;;) {
			more.wait(lock, [this] { return wanted > 0; });
			wanted--;
			const std::function<void()> *f = work;
			lock.unlock();
			(*f)();
			lock.lock();
			if (--running == 0)
				done.notify_one();
		}
	}
};

Pool &pool() {
	static Pool *p = new Pool; // its threads may outlive static objects
	return *p;
}

// What was run so far.
struct Count {
	std::atomic<uint64_t> launches{0}, instructions{0}, laneInstructions{0}, nanoseconds{0};
};
Count &count() {
	static Count *c = new Count;
	return *c;
}

std::optional<Fault> runOne(const Launch &l) {
	auto begin = std::chrono::steady_clock::now();
	const uint64_t blocks = l.blocks();
	std::atomic<uint64_t> next{0};
	std::atomic<bool> failed{false};
	std::mutex guard;
	std::optional<Fault> fault;
	std::function<void()> work = [&] {
		thread_local Block block;
		for (Range &r : block.near)
			r = Range();
		block.ran = block.ranLanes = 0;
		try {
			for (uint64_t i; !failed && (i = next++) < blocks;) {
				block.begin(l, i);
				block.run();
			}
		} catch (Fault &f) {
			std::lock_guard lock(guard);
			if (!fault)
				fault = f;
			failed = true;
		}
		count().instructions += block.ran;
		count().laneInstructions += block.ranLanes;
	};
	static std::mutex one; // launch at a time
	std::lock_guard lock(one);
	pool().run(unsigned(std::min<uint64_t>(settings().threads, blocks)), work);
	count().launches++;
	count().nanoseconds += std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin).count();
	return fault;
}

} // namespace

void tellCount() {
	Count &c = count();
	double seconds = c.nanoseconds * 1e-9;
	char text[200];
	snprintf(text, sizeof text, "%llu launches in %.2f s, %.3g instructions of warps, %.3g of lanes, %.3g of lanes a second", (unsigned long long)c.launches, seconds,
	         double(c.instructions), double(c.laneInstructions), seconds > 0 ? c.laneInstructions / seconds : 0.0);
	say(text);
}

std::optional<Fault> runLaunches(const std::vector<const Launch *> &launches) {
	for (const Launch *l : launches)
		if (auto f = runOne(*l))
			return f;
	return {};
}

} // namespace emulator
